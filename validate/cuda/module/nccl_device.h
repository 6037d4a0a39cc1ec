// SPDX-License-Identifier: Apache-2.0
// The part of a device that the NCCL network uses. Tests replace it by a test double that needs no GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "validate/cuda/driver.h"
#include "validate/cuda/module/device_memory.h"

namespace commfuse::validate {

class NcclDevice {
 public:
  NcclDevice() = default;
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;
  virtual ~NcclDevice() = default;

  /// Makes this the device of the calling thread.
  virtual void make_current() = 0;
  [[nodiscard]] virtual cudaStream_t stream_of(StreamId id) const = 0;
  /// Allocates from `source` from now on.
  virtual void take_memory_from(std::shared_ptr<MemorySource> source) = 0;
  /// Allocates plain device memory from now on.
  virtual void take_plain_memory() = 0;
  /// Destroys all captured graphs, because NCCL neither ends nor aborts a communicator while a graph holds its
  /// operations. The ids of the graphs become invalid. Does not wait: CUDA frees a running graph once it ends. May be
  /// called from another thread while the device's own thread waits for NCCL.
  virtual void end_graphs() = 0;
};

}  // namespace commfuse::validate
