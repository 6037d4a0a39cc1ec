// SPDX-License-Identifier: Apache-2.0
// Undocumented functions of the runtime that code compiled by nvcc calls: kernels are registered by name and launched
// by handle. Their code is for a GPU, so a launch only takes its place in the stream and computes nothing. The plugin's
// build for GPUs is linked with this double, which shows that the double has all functions that the plugin calls.
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/software_gpu/handles.h"
#include "tests/software_gpu/include/software_gpu.h"
#include "tests/software_gpu/misuse.h"

using cudaKernel_t = struct CUkern_st*;

namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

std::mutex& mutex() {
  static auto& shared = *new std::mutex;
  return shared;
}

/// Names of kernels, by the host functions that launch them.
std::map<const void*, std::string>& names() {
  static auto& registered = *new std::map<const void*, std::string>;
  return registered;
}

std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> pushed;
  return pushed;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}

void __cudaRegisterFunction(void** /*handle*/, const char* host, char* /*device*/, const char* name, int /*threads*/,
                            uint3* /*tid*/, uint3* /*bid*/, dim3* /*block*/, dim3* /*grid*/, int* /*warp*/) {
  const std::lock_guard lock(mutex());
  names()[host] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  software_gpu::check(!configurations().empty(), "a kernel is launched without a configuration");
  const Configuration last = configurations().back();
  configurations().pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  const std::lock_guard lock(mutex());
  if (!names().contains(host)) {
    return software_gpu::reported(cudaErrorInvalidValue);
  }
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** /*arguments*/,
                               std::size_t shared_bytes, cudaStream_t stream) {
  const char* name = nullptr;
  {
    const std::lock_guard lock(mutex());
    const auto entry = names().find(kernel);
    if (entry == names().end()) {
      return software_gpu::reported(cudaErrorInvalidValue);
    }
    name = entry->second.c_str();  // names in this map are never destroyed
  }
  software_gpu::launch(kernel, name, {grid, block, shared_bytes}, stream, [] {});
  return cudaSuccess;
}

/// Returns the number of registered kernels whose names contain this text.
int software_gpu_registered(const char* text) {
  const std::lock_guard lock(mutex());
  int count = 0;
  for (const auto& [host, name] : names()) {
    count += name.find(text) != std::string::npos ? 1 : 0;
  }
  return count;
}
}
