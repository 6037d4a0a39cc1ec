// SPDX-License-Identifier: Apache-2.0
// Memory that NCCL knows of, and so reads and writes in place.
#pragma once

#include <nccl.h>

#include <map>
#include <vector>

#include "model/units.h"
#include "validate/cuda/module/device_memory.h"

namespace commfuse::validate {

/// All members of the communicators allocate and release the same sizes in the same order.
class NcclMemory final : public MemorySource {
 public:
  /// `symmetric`: as windows, which collectives by copy engines need; otherwise registered.
  NcclMemory(bool symmetric, Duration patience) : symmetric_(symmetric), patience_(patience) {}

  /// From now on, and of what is allocated already. All its members call it.
  void join(ncclComm_t comm);

  void* allocate(std::size_t bytes) override;
  void release(void* at) override;
  /// Before the communicators end: what was allocated stays, unknown to NCCL.
  void deregister();
  /// The communicators are gone, and what they knew.
  void abandon();

 private:
  struct Registration {
    ncclComm_t comm = nullptr;
    void* handle = nullptr;
  };

  [[nodiscard]] Registration registered(ncclComm_t comm, void* at, std::size_t bytes) const;
  void deregister(const std::vector<Registration>& all) const;

  std::vector<ncclComm_t> comms_;
  bool symmetric_ = false;
  Duration patience_{};
  struct Block {
    std::size_t bytes = 0;
    std::vector<Registration> known;
  };
  std::map<void*, Block> blocks_;
};

}  // namespace commfuse::validate
