// SPDX-License-Identifier: Apache-2.0
// The network interface over NCCL. Each lane has its own communicators, so that lanes do not wait for each other.
#pragma once

#include <memory>

#include "validate/cuda/cuda_module.h"
#include "validate/cuda/driver.h"
#include "validate/cuda/module/nccl_device.h"
#include "validate/cuda/module/nccl_library.h"

namespace commfuse::validate {

/// The rank of this process, and the number of all ranks.
struct NetworkMember {
  int rank = 0;
  int ranks = 1;
};

/// Works without a driver.
NetworkKey make_nccl_key(const NcclLibrary& nccl);
/// Returns the network once all members have called this function. Throws std::runtime_error if NCCL is absent, too old
/// or fails, or if connecting takes longer than `options.patience`. `nccl` and `device` must outlive the network.
std::unique_ptr<Network> connect_nccl(const NcclLibrary& nccl, NcclDevice& device, const NetworkKey& key,
                                      const NetworkMember& member, const NetworkOptions& options);

}  // namespace commfuse::validate
