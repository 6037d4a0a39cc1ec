// SPDX-License-Identifier: Apache-2.0
// The peers interface over CUDA: memory by cudaIpc handles, flags by the driver's stream memory operations, and copies
// by cudaMemcpyAsync, for which the driver chooses the engine.
#pragma once

#include <memory>

#include "validate/cuda/module/nccl_device.h"
#include "validate/cuda/peers.h"

namespace commfuse::validate {

/// Throws std::runtime_error if the driver lacks stream memory operations. `device` must outlive the result.
std::unique_ptr<Peers> make_peers(NcclDevice& device);

}  // namespace commfuse::validate
