// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/peer_memory.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "validate/cuda/module/driver_function.h"
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

namespace {

// In older versions of CUDA, a parameter of the kernel module had to allow these operations.
constexpr unsigned version_of_operations = 11070;

template <class Function>
Function stream_operation(const char* name) {
  const auto function = driver_function<Function>(name, version_of_operations);
  if (function == nullptr) {
    throw std::runtime_error(fmt::format("the driver has no {}, which CUDA 11.7 added; install a newer driver", name));
  }
  return function;
}

class CudaPeers final : public Peers {
 public:
  explicit CudaPeers(NcclDevice& device)
      : device_(device),
        error_string_(stream_operation<PFN_cuGetErrorString_v6000>("cuGetErrorString")),
        write_(stream_operation<PFN_cuStreamWriteValue32_v11070>("cuStreamWriteValue32")),
        wait_(stream_operation<PFN_cuStreamWaitValue32_v11070>("cuStreamWaitValue32")) {
    device_.make_current();
    int ordinal = 0;
    int can_flush = 0;
    require(cudaGetDevice(&ordinal), "cudaGetDevice");
    require(cudaDeviceGetAttribute(&can_flush, cudaDevAttrCanFlushRemoteWrites, ordinal), "cudaDeviceGetAttribute");
    // Without the flush, a device may see a peer's flag before data that was written earlier.
    wait_flags_ = CU_STREAM_WAIT_VALUE_GEQ | (can_flush != 0 ? unsigned{CU_STREAM_WAIT_VALUE_FLUSH} : 0U);
  }

  Shared share(Bytes bytes) override {
    void* at = nullptr;
    require(cudaMalloc(&at, static_cast<std::size_t>(bytes.count)), "cudaMalloc");
    cudaIpcMemHandle_t handle{};
    if (const cudaError_t status = cudaIpcGetMemHandle(&handle, at); status != cudaSuccess) {
      static_cast<void>(cudaFree(at));
      require(status, "cudaIpcGetMemHandle");
    }
    Shared shared{.at = address_of(at)};
    static_assert(sizeof handle == std::tuple_size_v<MemoryKey>);
    std::memcpy(shared.key.data(), &handle, sizeof handle);
    return shared;
  }

  void unshare(Address at) override { require(cudaFree(pointer_to(at)), "cudaFree"); }

  Address open(const MemoryKey& key) override {
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, key.data(), sizeof handle);
    void* at = nullptr;
    require(cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess),
            "cudaIpcOpenMemHandle, which needs GPUs that can access each other (nvidia-smi topo -p2p r),");
    return address_of(at);
  }

  void close(Address at) override { require(cudaIpcCloseMemHandle(pointer_to(at)), "cudaIpcCloseMemHandle"); }

  void set(Address flags, std::size_t count, FlagValue value) override {
    const std::vector<FlagValue> values(count, value);
    require(cudaMemcpy(pointer_to(flags), values.data(), count * sizeof value, cudaMemcpyHostToDevice), "cudaMemcpy");
    // The call may return before a copy from pageable memory is done.
    require(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }

  void signal(StreamId stream, Address flag, FlagValue value) override {
    require_driver(write_(device_.stream_of(stream), flag, value, CU_STREAM_WRITE_VALUE_DEFAULT),
                   "cuStreamWriteValue32");
  }

  void await(StreamId stream, Address flag, FlagValue value) override {
    require_driver(wait_(device_.stream_of(stream), flag, value, wait_flags_), "cuStreamWaitValue32");
  }

  void copy(StreamId stream, const Panel& from, const Panel& to) override {
    require(from.rows == to.rows && from.columns == to.columns && from.dtype == to.dtype,
            "a copy to a peer has equal panels on both sides");
    cudaStream_t on = device_.stream_of(stream);
    if (from.contiguous() && to.contiguous()) {
      require(cudaMemcpyAsync(pointer_to(to.at), pointer_to(from.at), static_cast<std::size_t>(from.bytes().count),
                              cudaMemcpyDeviceToDevice, on),
              "cudaMemcpyAsync");
      return;
    }
    require(cudaMemcpy2DAsync(pointer_to(to.at), pitch_of(to), pointer_to(from.at), pitch_of(from),
                              static_cast<std::size_t>(from.columns * bytes_of(from.dtype)),
                              static_cast<std::size_t>(from.rows), cudaMemcpyDeviceToDevice, on),
            "cudaMemcpy2DAsync");
  }

 private:
  void require_driver(CUresult status, const char* call) const {
    if (status != CUDA_SUCCESS) {
      const char* text = nullptr;
      error_string_(status, &text);
      throw std::runtime_error(fmt::format("{} failed: {}", call, text == nullptr ? "unknown" : text));
    }
  }

  static std::size_t pitch_of(const Panel& panel) {
    return static_cast<std::size_t>((panel.rows == 1 ? panel.columns : panel.stride) * bytes_of(panel.dtype));
  }

  NcclDevice& device_;
  PFN_cuGetErrorString_v6000 error_string_;
  PFN_cuStreamWriteValue32_v11070 write_;
  PFN_cuStreamWaitValue32_v11070 wait_;
  unsigned wait_flags_ = 0;
};

}  // namespace

std::unique_ptr<Peers> make_peers(NcclDevice& device) { return std::make_unique<CudaPeers>(device); }

}  // namespace commfuse::validate
