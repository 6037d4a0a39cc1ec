// SPDX-License-Identifier: Apache-2.0
// A call of attention, cut into what one library kernel can take: queries that stand one behind the other in their
// sequences, and one block of columns.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// [sequence, head, position, column of a head] of queries, keys, values and results. Heads are `head` elements apart.
/// Of the rows of a panel, those of one position in all sequences follow each other.
struct AttentionPieceShape {
  std::int64_t sequences = 1;
  std::int64_t batch = 1;  ///< Rows from a position to the next: all sequences there are.
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;                                      ///< Query heads share them in equal runs.
  std::int64_t head = 0;                                          ///< Columns.
  std::int64_t queries = 0;                                       ///< Of each sequence.
  std::int64_t keys = 0;                                          ///< Of each sequence: as many as the last query sees.
  std::int64_t query_stride = 0, key_stride = 0, out_stride = 0;  ///< Elements from a row to the next.
  DType dtype = DType::bf16;                                      ///< Of queries, keys and values.
  DType out_dtype = DType::bf16;
  bool causal = false;
  friend auto operator<=>(const AttentionPieceShape&, const AttentionPieceShape&) = default;
};

/// Where the first element of each lies. A causal one's first query stands at `first_position` of its sequence.
struct AttentionPiece {
  AttentionPieceShape shape;
  std::int64_t first_position = 0;
  Address queries = 0, keys = 0, values = 0, out = 0;
};

/// All of a call. `joined`: sequences that have the same rows of a part are one piece; else every sequence is its own.
std::vector<AttentionPiece> pieces_of(const AttentionCall& call, bool joined);

}  // namespace commfuse::validate
