// SPDX-License-Identifier: Apache-2.0
// Allocators of device memory: plain memory here; nccl_memory.h has memory that NCCL accesses without a copy.
#pragma once

#include <cstddef>

#include "validate/cuda/module/failures.h"

namespace commfuse::validate {

class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;

  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* at) = 0;
};

class PlainMemory final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    void* at = nullptr;
    require(cudaMalloc(&at, bytes), "cudaMalloc");
    return at;
  }
  void release(void* at) override { require(cudaFree(at), "cudaFree"); }
};

}  // namespace commfuse::validate
