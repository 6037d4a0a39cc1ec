// SPDX-License-Identifier: Apache-2.0
// Cuts an attention call into pieces that libraries accept: consecutive queries of one or all sequences, in one block
// of columns.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Shape of queries, keys, values and results on the axes [sequence, head, position, column of a head]. Consecutive
/// heads are `head` elements apart. In a panel, the rows of the same position in all sequences are consecutive.
struct AttentionPieceShape {
  std::int64_t sequences = 1;
  std::int64_t batch = 1;  ///< Rows from one position to the next, which is the total number of sequences.
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  ///< Each kv head serves equally many consecutive query heads.
  std::int64_t head = 0;      ///< Columns of a head.
  std::int64_t queries = 0;   ///< Queries of each sequence.
  std::int64_t keys = 0;      ///< Keys of each sequence; if causal, up to the position of the last query.
  std::int64_t query_stride = 0, key_stride = 0, out_stride = 0;  ///< Elements from one row to the next.
  DType dtype = DType::bf16;                                      ///< Type of queries, keys and values.
  DType out_dtype = DType::bf16;
  bool causal = false;
  friend auto operator<=>(const AttentionPieceShape&, const AttentionPieceShape&) = default;
};

/// A piece, with the address of the first element of each operand. The first query of a causal piece is at
/// `first_position` of its sequence.
struct AttentionPiece {
  AttentionPieceShape shape;
  std::int64_t first_position = 0;
  Address queries = 0, keys = 0, values = 0, out = 0;
};

/// Returns all pieces of a call. With `joined`, all sequences of a part form one piece per block of columns if they
/// have the same positions in the part; otherwise every sequence forms pieces of its own.
std::vector<AttentionPiece> pieces_of(const AttentionCall& call, bool joined);

}  // namespace commfuse::validate
