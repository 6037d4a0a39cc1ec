// SPDX-License-Identifier: Apache-2.0
// Properties of the device, launches, and green contexts.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include "tests/software_gpu/fibers.h"
#include "tests/software_gpu/handles.h"
#include "tests/software_gpu/misuse.h"
#include "tests/software_gpu/sharing.h"

struct CUdevResourceDesc_st {
  CUdevResource resource;
};
struct CUgreenCtx_st {
  int device = 0;
  bool alive = true;
  CUdevResource resource{};
  std::vector<cudaStream_t> streams;
};

namespace software_gpu {

namespace {

constexpr const char* device_name = "software GPU (a program on a processor; times are not a GPU's)";
constexpr int clock_khz = 1'000'000;
constexpr int max_shared_bytes = 227 * 1024;
constexpr std::size_t default_shared_bytes = 48 * 1024;
constexpr unsigned max_threads = 1024;
constexpr unsigned max_blocks = 65535;  // blocks along y and z

thread_local int current = 0;

/// Returns the devices of the machine that CUDA_VISIBLE_DEVICES shows, in the order of that variable.
const std::vector<int>& visible_devices() {
  static const std::vector<int> visible = [] {
    std::vector<int> shown;
    const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe): nobody changes it
    if (chosen == nullptr) {
      for (int i = 0; i < settings().devices; ++i) {
        shown.push_back(i);
      }
      return shown;
    }
    std::istringstream numbers(chosen);
    for (std::string text_of_number; std::getline(numbers, text_of_number, ',');) {
      int number = 0;
      const char* text_end = text_of_number.data() + text_of_number.size();
      const auto [end, error] = std::from_chars(text_of_number.data(), text_end, number);
      if (error != std::errc{} || end != text_end || number < 0 || number >= settings().devices) {
        break;  // CUDA too ends the list at the first entry that names no device
      }
      shown.push_back(number);
    }
    return shown;
  }();
  return visible;
}

std::mutex& attributes_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
/// Limits of dynamic shared memory for kernels that raised them.
std::map<const void*, std::size_t>& shared_limits() {
  static auto& limits = *new std::map<const void*, std::size_t>;
  return limits;
}

std::size_t shared_limit(const void* kernel) {
  const std::lock_guard lock(attributes_mutex());
  const auto raised = shared_limits().find(kernel);
  return raised == shared_limits().end() ? default_shared_bytes : raised->second;
}

/// Returns an estimate of a kernel's FLOPs, because the work of its threads is not known.
double flops_of(const KernelShape& shape) {
  constexpr double flops_per_thread = 64.0;
  return flops_per_thread * shape.grid.x * shape.grid.y * shape.grid.z * shape.block.x * shape.block.y * shape.block.z;
}

cudaError_t refusal(const void* kernel, const KernelShape& shape, cudaStream_t stream) {
  if (!is_alive(stream) || stream->device != current) {
    return cudaErrorInvalidResourceHandle;
  }
  const auto threads = std::uint64_t{shape.block.x} * shape.block.y * shape.block.z;
  const auto blocks = std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  if (threads == 0 || threads > max_threads || blocks == 0 || shape.grid.x > INT32_MAX || shape.grid.y > max_blocks ||
      shape.grid.z > max_blocks) {
    return cudaErrorInvalidConfiguration;
  }
  return shape.shared_bytes > shared_limit(kernel) ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace

bool is_device(int device) { return device >= 0 && device < static_cast<int>(visible_devices().size()); }

int current_device() { return current; }

std::string uuid_of(int device) { return uuid_in_machine(visible_devices()[static_cast<std::size_t>(device)]); }

std::string uuid_in_machine(int number) {
  std::string bytes("software GPU \0\0\0", 16);
  bytes[15] = static_cast<char>(number);
  return bytes;
}

void launch(const void* kernel, const char* kernel_name, const KernelShape& shape, cudaStream_t stream,
            std::function<void()> body) {
  if (const cudaError_t status = refusal(kernel, shape, stream); status != cudaSuccess) {
    reported(status);
    return;
  }
  reported(enqueue(stream, {.kind = WorkKind::kernel,
                            .name = kernel_name,
                            .ctas = shape.grid.x * shape.grid.y * shape.grid.z,
                            .run = [=, body = std::move(body)] {
                              const double flops = flops_of(shape);
                              if (computes(flops)) {
                                set_running_kernel(kernel_name);
                                run_kernel(kernel_name, shape, body, random_number());
                                set_running_kernel(nullptr);
                              } else {
                                take_time(flops);
                              }
                              return cudaSuccess;
                            }}));
}

}  // namespace software_gpu

using namespace software_gpu;  // NOLINT(google-build-using-namespace): this file defines its C interface

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  // The double of NVIDIA's management library is loaded here, by a run path that the program lacks. A program that
  // requests NVIDIA's library later gets this double, because it has the same name.
  static void* const management = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  static_cast<void>(management);
  *count = static_cast<int>(visible_devices().size());
  return reported(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) {
    return reported(cudaErrorInvalidDevice);
  }
  current = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* about, int device) {
  if (!is_device(device)) {
    return reported(cudaErrorInvalidDevice);
  }
  *about = {};
  std::strncpy(about->name, device_name, sizeof about->name - 1);
  std::memcpy(about->uuid.bytes, uuid_of(device).data(), sizeof about->uuid.bytes);
  about->totalGlobalMem = settings().memory;
  about->major = 9;
  about->multiProcessorCount = settings().multiprocessors;
  // A program overwrites the cache before every timed run, so a small cache saves the processor's time.
  about->l2CacheSize = 1 << 20;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  if (!is_device(device)) {
    return reported(cudaErrorInvalidDevice);
  }
  switch (which) {
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate: *value = clock_khz; return cudaSuccess;
    case cudaDevAttrMultiProcessorCount: *value = settings().multiprocessors; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = max_shared_bytes; return cudaSuccess;
    case cudaDevAttrCanFlushRemoteWrites: *value = 1; return cudaSuccess;
  }
  return reported(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (forbidden_by_capture()) {
    return reported(cudaErrorStreamCaptureUnsupported);
  }
  Device& state = software_gpu::device(current);
  state.wait_until_idle(-1);
  return reported(state.error());
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidPitchValue: return "invalid pitch argument";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorDeviceUninitialized: return "invalid device context";
    case cudaErrorMapBufferObjectFailed: return "mapping of buffer object failed";
    case cudaErrorPeerAccessUnsupported: return "peer access is not supported between these two devices";
    case cudaErrorTooManyPeers: return "peer mapping resources exhausted";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorIllegalState: return "the operation cannot be performed in the present state";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorPeerAccessAlreadyEnabled: return "peer access is already enabled";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureMerge: return "operation would result in a merge of separate capture sequences";
    case cudaErrorStreamCaptureUnmatched: return "capture was not ended in the same stream as it began";
    case cudaErrorStreamCaptureUnjoined: return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation: return "dependency created on uncaptured work in another stream";
    case cudaErrorCapturedEvent: return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorStreamCaptureWrongThread: return "attempt to terminate a capture sequence from another thread";
  }
  return "unrecognized error code";
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > max_shared_bytes) {
    return reported(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(attributes_mutex());
  shared_limits()[function] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

}  // extern "C"

namespace software_gpu {

namespace {

using Mask = std::array<std::uint64_t, 4>;

unsigned count_of(const std::uint64_t (&members)[4]) {
  unsigned count = 0;
  for (const std::uint64_t word : members) {
    count += static_cast<unsigned>(std::popcount(word));
  }
  return count;
}

/// Number of green contexts that are not freed.
std::atomic<int>& contexts() {
  static std::atomic<int> count = 0;
  return count;
}

void require_none_left() {
  if (contexts() > 0) {
    std::fprintf(stderr, "software GPU: the process ends with %d green contexts that were not given back\n",
                 contexts().load());
    std::_Exit(98);
  }
}

CUdevResource resource_of(const std::vector<unsigned>& members) {
  CUdevResource resource{.type = CU_DEV_RESOURCE_TYPE_SM};
  for (const unsigned member : members) {
    resource.members[member / 64] |= std::uint64_t{1} << member % 64;
  }
  resource.sm = {.smCount = count_of(resource.members),
                 .minSmPartitionSize = multiprocessors_in_group,
                 .smCoscheduledAlignment = multiprocessors_in_group};
  return resource;
}

std::vector<unsigned> members_of(const CUdevResource& resource) {
  std::vector<unsigned> members;
  for (unsigned i = 0; i < static_cast<unsigned>(settings().multiprocessors); ++i) {
    if ((resource.members[i / 64] >> i % 64 & 1U) != 0) {
      members.push_back(i);
    }
  }
  return members;
}

CUresult get_error_string(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS                                ? "no error"
          : error == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION ? "invalid resource configuration"
                                                               : "an error of the driver";
  return CUDA_SUCCESS;
}

CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return is_device(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult get_resource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  if (!is_device(device) || type != CU_DEV_RESOURCE_TYPE_SM) {
    return is_device(device) ? CUDA_ERROR_INVALID_RESOURCE_TYPE : CUDA_ERROR_INVALID_DEVICE;
  }
  std::vector<unsigned> members;
  for (unsigned i = 0; i < static_cast<unsigned>(settings().multiprocessors); ++i) {
    members.push_back(i);
  }
  *resource = resource_of(members);
  return CUDA_SUCCESS;
}

CUresult split(CUdevResource* result, unsigned* groups, const CUdevResource* input, CUdevResource* remaining,
               unsigned flags, unsigned least) {
  if (flags != 0 || *groups != 1 || input->type != CU_DEV_RESOURCE_TYPE_SM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::vector<unsigned> members = members_of(*input);
  const std::size_t taken =
      std::size_t{(std::max(least, 1U) + multiprocessors_in_group - 1) / multiprocessors_in_group} *
      multiprocessors_in_group;
  if (taken > members.size()) {
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  }
  const auto end = members.begin() + static_cast<std::ptrdiff_t>(taken);
  *result = resource_of({members.begin(), end});
  *remaining = resource_of({end, members.end()});
  return CUDA_SUCCESS;
}

CUresult describe(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  if (count != 1 || resources->type != CU_DEV_RESOURCE_TYPE_SM || resources->sm.smCount == 0) {
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  }
  *description = new CUdevResourceDesc_st{*resources};
  return CUDA_SUCCESS;
}

CUresult create_context(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device, unsigned flags) {
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM || !is_device(device) || description == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  static const int registered = std::atexit(require_none_left);
  static_cast<void>(registered);
  *context = kept(new CUgreenCtx_st{.device = device, .resource = description->resource});
  delete description;
  ++contexts();
  return CUDA_SUCCESS;
}

CUresult destroy_context(CUgreenCtx context) {
  if (context == nullptr || !std::exchange(context->alive, false)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (std::ranges::any_of(context->streams, [](cudaStream_t stream) { return is_alive(stream); })) {
    misuse("a green context is destroyed that still has a stream");
  }
  --contexts();
  return CUDA_SUCCESS;
}

CUresult create_stream(CUstream* stream, CUgreenCtx context, unsigned flags, int priority) {
  if (context == nullptr || !context->alive) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (flags != CU_STREAM_NON_BLOCKING) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *stream = new_stream(context->device, priority, context);
  context->streams.push_back(*stream);
  return CUDA_SUCCESS;
}

}  // namespace

}  // namespace software_gpu

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                        unsigned long long flags,
                                                        cudaDriverEntryPointQueryResult* status) {
  // Functions by name, each with the first version of the driver that provides it.
  static const std::map<std::string, std::pair<unsigned, void*>> functions{
      {"cuGetErrorString", {6000, reinterpret_cast<void*>(&get_error_string)}},
      {"cuDeviceGet", {2000, reinterpret_cast<void*>(&device_get)}},
      {"cuDeviceGetDevResource", {12040, reinterpret_cast<void*>(&get_resource)}},
      {"cuDevSmResourceSplitByCount", {12040, reinterpret_cast<void*>(&software_gpu::split)}},
      {"cuDevResourceGenerateDesc", {12040, reinterpret_cast<void*>(&describe)}},
      {"cuGreenCtxCreate", {12040, reinterpret_cast<void*>(&create_context)}},
      {"cuGreenCtxDestroy", {12040, reinterpret_cast<void*>(&destroy_context)}},
      {"cuGreenCtxStreamCreate", {12050, reinterpret_cast<void*>(&create_stream)}},
      {"cuStreamWriteValue32", {11070, reinterpret_cast<void*>(&write_value)}},
      {"cuStreamWaitValue32", {11070, reinterpret_cast<void*>(&wait_value)}}};
  *function = nullptr;
  const auto function_entry = functions.find(symbol);
  if (flags != cudaEnableDefault) {
    return reported(cudaErrorInvalidValue);
  }
  *status = function_entry == functions.end()        ? cudaDriverEntryPointSymbolNotFound
            : function_entry->second.first > version ? cudaDriverEntryPointVersionNotSufficent
                                                     : cudaDriverEntryPointSuccess;
  if (*status == cudaDriverEntryPointSuccess) {
    *function = function_entry->second.second;
  }
  return cudaSuccess;
}
