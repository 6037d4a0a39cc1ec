// SPDX-License-Identifier: Apache-2.0
// Order of the tokens in shards. In order: shard 0 has the first tokens, shard 1 the next. Zig-zag: every cut is two
// blocks, one from the front of the sequence and its mirror image from the back, so that under a causal mask all cuts
// see the same number of keys. N = 4, one cut per shard:
//
//   in order   shard 0: block 0      zig-zag   shard 0: blocks 0 and 7
//              shard 1: block 1                shard 1: blocks 1 and 6
//              shard 2: block 2                shard 2: blocks 2 and 5
//              shard 3: block 3                shard 3: blocks 3 and 4
//
// Buffers of all tokens hold shard after shard. Only attention depends on the positions of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/builder.h"

namespace commfuse {

/// Rows of a buffer of all tokens that are also consecutive in the sequence.
struct TokenRun {
  Index row;       // row of the buffer
  Index position;  // position in the sequence
  std::int32_t rows = 0;
};

struct TokenOrder {
  std::int32_t cuts = 1;  // number of cuts of all shards together
  bool zigzag = false;

  /// Returns the number of blocks per cut.
  [[nodiscard]] std::int32_t grain() const { return zigzag ? 2 : 1; }
  [[nodiscard]] std::int32_t blocks() const { return cuts * grain(); }
  /// Returns `rows` rows of a buffer of all tokens, from `row` on, as runs from top to bottom. In zig-zag, the rows
  /// must be whole cuts.
  [[nodiscard]] std::vector<TokenRun> runs(const Index& row, std::int32_t rows) const;
  /// Returns all rows of a buffer of all tokens, in the order of the sequence.
  [[nodiscard]] Operand in_sequence(const ProgramBuilder& builder, BufferId all_tokens) const;
};

}  // namespace commfuse
