// SPDX-License-Identifier: Apache-2.0
// CUPTI's interface, as far as the plugin uses it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#define CUPTIAPI
#define CUPTI_API_VERSION 130001

enum CUptiResult {
  CUPTI_SUCCESS = 0,
  CUPTI_ERROR_INVALID_PARAMETER = 1,
  CUPTI_ERROR_INVALID_OPERATION = 7,
  CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
  CUPTI_ERROR_NOT_INITIALIZED = 15,
  CUPTI_ERROR_QUEUE_EMPTY = 18,
  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
};
enum CUpti_ActivityKind {
  CUPTI_ACTIVITY_KIND_INVALID = 0,
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_DRIVER = 4,
  CUPTI_ACTIVITY_KIND_RUNTIME = 5,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_MEMCPY2 = 22,
  CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 39,
};
enum CUpti_ActivityMemcpyKind {
  CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8,
  CUPTI_ACTIVITY_MEMCPY_KIND_PTOP = 10,
};
enum CUpti_ActivityFlag { CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1 };
enum CUpti_ChannelType { CUPTI_CHANNEL_TYPE_COMPUTE = 1, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY = 2 };
enum CUpti_ExternalCorrelationKind { CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 = 3 };
enum CUpti_CallbackDomain { CUPTI_CB_DOMAIN_RESOURCE = 3 };
enum CUpti_CallbackIdResource { CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED = 13, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED = 20 };

using CUpti_CallbackId = std::uint32_t;
using CUpti_SubscriberHandle = struct CUpti_Subscriber_st*;

struct CUpti_GraphData {
  CUgraph graph;
  CUgraph originalGraph;
  CUgraphNode node;
  CUgraphNode originalNode;
  CUgraphNodeType nodeType;
  CUgraphNode dependency;
  CUgraphExec graphExec;
};
struct CUpti_ResourceData {
  CUcontext context;
  union {
    CUstream stream;
  } resourceHandle;
  void* resourceDescriptor;
};

// Records begin with their kind and follow each other at multiples of eight bytes.
struct alignas(8) CUpti_Activity {
  CUpti_ActivityKind kind;
};
struct alignas(8) CUpti_ActivityExternalCorrelation {
  CUpti_ActivityKind kind;
  CUpti_ExternalCorrelationKind externalKind;
  std::uint64_t externalId;
  std::uint32_t correlationId;
  std::uint32_t reserved;
};
struct alignas(8) CUpti_ActivityKernel10 {
  CUpti_ActivityKind kind;
  std::uint32_t correlationId;
  std::uint64_t start;
  std::uint64_t end;
  std::int32_t gridX;
  std::int32_t gridY;
  std::int32_t gridZ;
  const char* name;
  std::uint64_t graphNodeId;
};
struct alignas(8) CUpti_ActivityMemcpy6 {
  CUpti_ActivityKind kind;
  std::uint8_t copyKind;
  std::uint32_t correlationId;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t graphNodeId;
  CUpti_ChannelType channelType;
};
struct alignas(8) CUpti_ActivityMemcpyPtoP4 {
  CUpti_ActivityKind kind;
  std::uint8_t copyKind;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t correlationId;
  std::uint64_t graphNodeId;
  CUpti_ChannelType channelType;
};

using CUpti_CallbackFunc = void (*)(void* userdata, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
using CUpti_BuffersCallbackRequestFunc = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records);
using CUpti_BuffersCallbackCompleteFunc = void (*)(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                                   std::size_t bytes, std::size_t valid_bytes);
using CUpti_TimestampCallbackFunc = std::uint64_t (*)();

extern "C" {
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* userdata);
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber);
CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id);
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id);
CUptiResult cuptiGetResultString(CUptiResult result, const char** text);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityFlushAll(std::uint32_t flag);
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record);
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t id);
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t* last);
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete);
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc time);
}
