// SPDX-License-Identifier: Apache-2.0
// Owners of CUDA objects; their destructors free the objects.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "validate/cuda/module/failures.h"

namespace commfuse::validate {

template <class Handle, auto give_back>
struct GiveBack {
  void operator()(Handle handle) const { static_cast<void>(give_back(handle)); }
};
template <class Handle, auto give_back>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, GiveBack<Handle, give_back>>;

using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
using OwnedEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using OwnedGraph = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using OwnedMemory = Owned<std::byte*, cudaFree>;
using PinnedMemory = Owned<std::byte*, cudaFreeHost>;

/// Returns a stream that does not wait for the default stream, and for which the default stream does not wait.
inline OwnedStream new_stream(int priority) {
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
  return OwnedStream(stream);
}

inline OwnedEvent new_event(bool timed) {
  cudaEvent_t event = nullptr;
  require(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreateWithFlags");
  return OwnedEvent(event);
}

inline OwnedMemory new_device_memory(std::size_t bytes) {
  void* at = nullptr;
  require(cudaMalloc(&at, bytes), "cudaMalloc");
  return OwnedMemory(static_cast<std::byte*>(at));
}

/// Returns memory that the device can access too.
inline PinnedMemory new_pinned_memory(std::size_t bytes) {
  void* at = nullptr;
  require(cudaHostAlloc(&at, bytes, cudaHostAllocMapped), "cudaHostAlloc");
  return PinnedMemory(static_cast<std::byte*>(at));
}

}  // namespace commfuse::validate
