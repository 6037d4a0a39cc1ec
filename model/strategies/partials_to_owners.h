// SPDX-License-Identifier: Apache-2.0
// A reduce-scatter that sends every partial product directly to its owner while the next one is computed; the owner
// adds them up at the end. TransformerEngine's ring exchange and fused kernels use this schedule, and differ in what
// moves the partial products. FuseRS direct needs less memory and has its own generator (fuse_rs_direct.cpp).
#pragma once

#include "model/strategies/stage.h"
#include "model/strategies/strategies.h"

namespace commfuse {

struct PartialsToOwners {
  Lane transfers{LaneKind::comm, 0};
  Lane sum{LaneKind::compute, 0};
  bool one_kernel = false;  // the GEMMs are parts of one kernel
  bool transposed = false;  // the second factor is w^T, as in a backward pass
};

/// Adds the schedule of a gemm_rs site, or the scatter of an ag_gemm_backward site: step i computes the partial product
/// of shard r+1+i, block after block, the rank's own shard last, and sends each block by shift i+1. No two partial
/// products share memory.
Done partials_to_owners(const Stage& stage, const PartialsToOwners& how);

}  // namespace commfuse
