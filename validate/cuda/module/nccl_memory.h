// SPDX-License-Identifier: Apache-2.0
// Memory that is registered with NCCL, which then reads and writes it in place.
#pragma once

#include <nccl.h>

#include <memory>
#include <utility>
#include <vector>

#include "validate/cuda/module/device_memory.h"
#include "validate/cuda/module/nccl_failures.h"

namespace commfuse::validate {

/// Memory that is registered with communicators. All of their members must allocate and release blocks of equal sizes
/// in the same order.
class NcclMemory final : public MemorySource {
 public:
  /// With `symmetric`, registers windows instead of buffers; puts, and collectives by copy engines, need windows.
  NcclMemory(std::shared_ptr<NcclCalls> calls, bool symmetric) : calls_(std::move(calls)), symmetric_(symmetric) {}

  /// Registers current and later allocations with a communicator. All members of the communicator must call it.
  void join(ncclComm_t comm);

  void* allocate(std::size_t bytes) override;
  void release(void* at) override;
  /// A location in one of the windows of a communicator.
  struct InWindow {
    void* window = nullptr;
    std::size_t offset = 0;
  };
  /// Throws std::runtime_error if the memory is not registered with the communicator.
  [[nodiscard]] InWindow in_window(ncclComm_t comm, const void* at, std::size_t bytes) const;

  /// Ends all registrations before the communicators end; the memory remains valid.
  void deregister();
  /// Forgets a communicator that no longer exists.
  void forget(ncclComm_t comm);
  /// Forgets all communicators and registrations, after the communicators have ended.
  void abandon();

 private:
  struct Registration {
    ncclComm_t comm = nullptr;
    void* handle = nullptr;
  };
  struct Block {
    void* at = nullptr;
    std::size_t bytes = 0;
    std::vector<Registration> registrations;
  };

  void add_registration(Block& block, ncclComm_t comm) const;
  void deregister(const Block& block) const;

  std::shared_ptr<NcclCalls> calls_;
  bool symmetric_ = false;
  std::vector<ncclComm_t> comms_;
  /// In the order of allocation, because NCCL requires the same order on all ranks, whose addresses differ.
  std::vector<Block> blocks_;
};

}  // namespace commfuse::validate
