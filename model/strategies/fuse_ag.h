// SPDX-License-Identifier: Apache-2.0
// What all FuseAG share: rows are multiplied in the order in which they come in, the own shard first.
//
//            step 0     step 1     step 2                    steps of a ring, a mesh or nested rings
//   comm     brings 1   brings 2   ...
//   compute  own        what 1     what 2 brought
//            shard      brought
//
// With groups of g shards a product: the own shard alone, then what is left over of the N-1 others, then g at a time.
// N = 8, g = 3:  own | 1 | 2 3 4 | 5 6 7.  The short group comes first, where only one product hides its transfers.
#pragma once

#include <functional>
#include <vector>

#include "model/strategies/rings.h"

namespace commfuse {

/// Rows that came in, one shard of them or a part of one, and the rows of the output that they give.
struct Piece {
  Operand rows;
  Operand results;
  Few<Flight> arrived;
};
using Pieces = std::vector<Piece>;

/// Adds to `pieces`, which is empty, what step 1, 2, ... multiplies; nothing after the last step.
using Bring = std::function<void(std::int32_t step, Pieces& pieces)>;

/// With groups of more than one shard, pieces are whole shards. N products, or fewer in groups.
Done multiply_what_comes(const Stage& stage, std::int32_t group, const Bring& bring);

}  // namespace commfuse
