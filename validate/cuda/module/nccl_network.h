// SPDX-License-Identifier: Apache-2.0
// The network interface over NCCL: a communicator for every lane, so that lanes go on beside each other.
#pragma once

#include <memory>

#include "validate/cuda/driver.h"
#include "validate/cuda/module/cuda_driver.h"
#include "validate/cuda/module/cuda_module.h"

namespace commfuse::validate {

/// Who of how many this is.
struct NetworkMember {
  int rank = 0;
  int ranks = 1;
};

/// Needs no driver.
NetworkKey make_nccl_key();
/// Returns when all members have called it. Throws std::runtime_error where NCCL fails, is too old, or waits for longer
/// than the patience.
std::unique_ptr<Network> connect_nccl(CudaDriver& driver, const NetworkKey& key, const NetworkMember& member,
                                      const NetworkOptions& options);

}  // namespace commfuse::validate
