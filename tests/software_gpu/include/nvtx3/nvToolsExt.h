// SPDX-License-Identifier: Apache-2.0
// NVTX without a profiler: every call does nothing.
#pragma once

#include <cstddef>
#include <cstdint>

constexpr std::uint16_t NVTX_VERSION = 3;
enum { NVTX_MESSAGE_TYPE_REGISTERED = 3, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1 };

using nvtxDomainHandle_t = struct nvtxDomainRegistration_st*;
using nvtxStringHandle_t = struct nvtxStringRegistration_st*;
struct nvtxEventAttributes_t {
  std::uint16_t version;
  std::uint16_t size;
  std::int32_t payloadType;
  union {
    std::uint64_t ullValue;
  } payload;
  std::int32_t messageType;
  union {
    nvtxStringHandle_t registered;
  } message;
};
constexpr std::uint16_t NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t);

inline nvtxDomainHandle_t nvtxDomainCreateA(const char*) { return nullptr; }
inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t, const char*) { return nullptr; }
inline int nvtxDomainRangePushEx(nvtxDomainHandle_t, const nvtxEventAttributes_t*) { return 0; }
inline int nvtxDomainRangePop(nvtxDomainHandle_t) { return 0; }
