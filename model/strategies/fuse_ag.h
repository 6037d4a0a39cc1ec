// SPDX-License-Identifier: Apache-2.0
// Common part of all FuseAG generators: rows are multiplied in the order in which they arrive, the rank's own shard
// first.
//
//            step 0           step 1           step 2            steps of a ring, a mesh or nested rings
//   comm     brings rows 1    brings rows 2    ...
//   compute  own shard        rows 1           rows 2
//
// With groups of g shards per GEMM, the rank's own shard is multiplied alone, then (N-1) mod g shards together, then g
// shards at a time. N = 8, g = 3: own | 1 | 2 3 4 | 5 6 7. The short group comes first, because only one GEMM hides its
// transfers.
#pragma once

#include <functional>
#include <vector>

#include "model/strategies/rings.h"

namespace commfuse {

/// Arrived rows of one shard, or of a part of a shard, and the rows of the output that they produce.
struct Piece {
  Operand rows;
  Operand results;
  Few<Flight> arrived;
};
using Pieces = std::vector<Piece>;

/// Fills the empty `pieces` with the rows that step `step` multiplies, and leaves `pieces` empty after the last step.
/// Steps are requested in order, from step 1 on.
using Bring = std::function<void(std::int32_t step, Pieces& pieces)>;

/// Adds the GEMMs: one for the rank's own shard, then one per piece, or fewer in groups. With groups of more than one
/// shard, pieces must be whole shards.
Done multiply_arrivals(const Stage& stage, std::int32_t group, const Bring& bring);

}  // namespace commfuse
