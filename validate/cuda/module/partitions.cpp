// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/partitions.h"

#include <cudaTypedefs.h>
#include <fmt/format.h>

#include <stdexcept>

namespace commfuse::validate {

// Before 12.5 a green context has no streams.
#if CUDA_VERSION >= 12050

namespace {

constexpr unsigned version_of_streams = 12050;

template <class Function>
Function entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  require(cudaGetDriverEntryPointByVersion(name, &found, version_of_streams, cudaEnableDefault, &result), name);
  if (result != cudaDriverEntryPointSuccess || found == nullptr) {
    throw std::runtime_error("the driver has no green contexts with streams; CUDA 12.5's has");
  }
  return reinterpret_cast<Function>(found);  // NOLINT(*-reinterpret-cast): what the call is for
}

void require_driver(CUresult status, const char* call) {
  if (status != CUDA_SUCCESS) {
    const char* text = nullptr;
    entry<PFN_cuGetErrorString_v6000>("cuGetErrorString")(status, &text);
    throw std::runtime_error(fmt::format("{} failed: {}", call, text == nullptr ? "unknown" : text));
  }
}

CUdevice device_of(int ordinal) {
  CUdevice device = 0;
  require_driver(entry<PFN_cuDeviceGet_v2000>("cuDeviceGet")(&device, ordinal), "cuDeviceGet");
  return device;
}

}  // namespace

std::size_t Partitions::add(int multiprocessors) {
  const CUdevice device = device_of(device_);
  if (!left_) {
    left_.emplace();
    require_driver(
        entry<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource")(device, &*left_, CU_DEV_RESOURCE_TYPE_SM),
        "cuDeviceGetDevResource");
  }
  CUdevResource taken{};
  CUdevResource rest{};
  unsigned groups = 1;
  require_driver(entry<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount")(
                     &taken, &groups, &*left_, &rest, 0, static_cast<unsigned>(multiprocessors)),
                 "cuDevSmResourceSplitByCount");
  if (groups == 0) {
    throw std::runtime_error(fmt::format("fewer than {} multiprocessors are left to set apart", multiprocessors));
  }
  CUdevResourceDesc description = nullptr;
  require_driver(entry<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc")(&description, &taken, 1),
                 "cuDevResourceGenerateDesc");
  CUgreenCtx context = nullptr;
  require_driver(entry<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate")(&context, description, device,
                                                                        CU_GREEN_CTX_DEFAULT_STREAM),
                 "cuGreenCtxCreate");
  parts_.push_back(
      {.context = decltype(Part::context)(context), .multiprocessors = static_cast<int>(taken.sm.smCount)});
  left_ = rest;
  return parts_.size() - 1;
}

OwnedStream Partitions::new_stream(std::size_t which, int priority) const {
  CUstream stream = nullptr;
  require_driver(entry<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate")(
                     &stream, parts_[which].context.get(), CU_STREAM_NON_BLOCKING, priority),
                 "cuGreenCtxStreamCreate");
  return OwnedStream(stream);
}

void Partitions::Destroy::operator()(CUgreenCtx context) const {
  try {
    static_cast<void>(entry<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy")(context));
  } catch (const std::exception&) {  // the driver is gone, and all it made
  }
}

#else

std::size_t Partitions::add(int /*multiprocessors*/) {
  throw std::runtime_error("this build's CUDA has no green contexts with streams; 12.5 has");
}
OwnedStream Partitions::new_stream(std::size_t /*which*/, int /*priority*/) const { return nullptr; }
void Partitions::Destroy::operator()(CUgreenCtx /*context*/) const {}

#endif

}  // namespace commfuse::validate
