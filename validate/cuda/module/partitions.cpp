// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/partitions.h"

#include <cudaTypedefs.h>
#include <fmt/format.h>

#include <stdexcept>

#include "validate/cuda/module/driver_function.h"

namespace commfuse::validate {

// Before CUDA 12.5, green contexts have no streams.
#if CUDA_VERSION >= 12050

namespace {

constexpr unsigned version_of_streams = 12050;

template <class Function>
Function context_function(const char* name) {
  const auto function = driver_function<Function>(name, version_of_streams);
  if (function == nullptr) {
    throw std::runtime_error("the driver has no green contexts with streams; install a driver for CUDA 12.5 or later");
  }
  return function;
}

void require_driver(CUresult status, const char* call) {
  if (status != CUDA_SUCCESS) {
    const char* text = nullptr;
    context_function<PFN_cuGetErrorString_v6000>("cuGetErrorString")(status, &text);
    throw std::runtime_error(fmt::format("{} failed: {}", call, text == nullptr ? "unknown" : text));
  }
}

CUdevice device_of(int ordinal) {
  CUdevice device = 0;
  require_driver(context_function<PFN_cuDeviceGet_v2000>("cuDeviceGet")(&device, ordinal), "cuDeviceGet");
  return device;
}

}  // namespace

CUdevResource GreenContexts::whole() const {
  CUdevResource whole{};
  require_driver(context_function<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource")(
                     device_of(device_), &whole, CU_DEV_RESOURCE_TYPE_SM),
                 "cuDeviceGetDevResource");
  return whole;
}

std::optional<std::pair<CUdevResource, CUdevResource>> GreenContexts::split(const CUdevResource& from,
                                                                            int multiprocessors) const {
  CUdevResource taken{};
  CUdevResource rest{};
  unsigned groups = 1;
  const CUresult status = context_function<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount")(
      &taken, &groups, &from, &rest, 0, static_cast<unsigned>(multiprocessors));
  if (status == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION || (status == CUDA_SUCCESS && groups == 0)) {
    return std::nullopt;
  }
  require_driver(status, "cuDevSmResourceSplitByCount");
  return std::pair(taken, rest);
}

CUgreenCtx GreenContexts::create(CUdevResource resource) const {
  CUdevResourceDesc description = nullptr;
  require_driver(
      context_function<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc")(&description, &resource, 1),
      "cuDevResourceGenerateDesc");
  CUgreenCtx context = nullptr;
  require_driver(context_function<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate")(
                     &context, description, device_of(device_), CU_GREEN_CTX_DEFAULT_STREAM),
                 "cuGreenCtxCreate");
  return context;
}

void GreenContexts::destroy(CUgreenCtx context) const noexcept {
  try {
    static_cast<void>(context_function<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy")(context));
  } catch (const std::exception&) {  // the driver has shut down, with all its contexts
  }
}

OwnedStream Partitions::new_stream(std::size_t id, int priority) const {
  CUstream stream = nullptr;
  require_driver(context_function<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate")(
                     &stream, pool_.context(id), CU_STREAM_NON_BLOCKING, priority),
                 "cuGreenCtxStreamCreate");
  return OwnedStream(stream);
}

#else

CUdevResource GreenContexts::whole() const {
  throw std::runtime_error("this build's CUDA has no green contexts with streams; build with CUDA 12.5 or later");
}
std::optional<std::pair<CUdevResource, CUdevResource>> GreenContexts::split(const CUdevResource& /*from*/,
                                                                            int /*multiprocessors*/) const {
  return std::nullopt;
}
CUgreenCtx GreenContexts::create(CUdevResource /*resource*/) const { return nullptr; }
void GreenContexts::destroy(CUgreenCtx /*context*/) const noexcept {}
OwnedStream Partitions::new_stream(std::size_t /*which*/, int /*priority*/) const { return nullptr; }

#endif

}  // namespace commfuse::validate
