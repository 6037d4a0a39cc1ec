// SPDX-License-Identifier: Apache-2.0
// Attention on matrices, shared by the interpreter and the unfused operation.
#pragma once

#include <cstdint>
#include <span>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "validate/values/arithmetic.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// The layout of q, k and v in a matrix. Each block of `qkv` columns is [q heads | k heads | v heads] and produces a
/// block of `out` columns; each kv head serves equally many consecutive query heads. Row = position * batch + sequence.
struct AttentionLayout {
  std::int64_t qkv = 0;
  std::int64_t out = 0;
  std::int64_t head = 0;
  std::int64_t batch = 0;
  bool causal = false;
};

/// Returns whether blocks of these sizes have only whole heads, kv heads and sequences.
bool holds_whole_heads(const Sizes& sizes, const AttentionShape& shape);
/// Requires holds_whole_heads().
AttentionLayout layout_of(const Sizes& sizes, const AttentionShape& shape);

/// Returns softmax(q k^T / sqrt(head)) v, in double. With Functions::integer, returns the sum of (q k) v over the
/// visible rows, wrapped into [-2, 2]: an integer that every q, k and v affects.
Matrix<double> attention(const AttentionLayout& layout, Functions functions, const Matrix<double>& qkv);
/// Returns the result of the function above, rounded to fp32 once.
Matrix<float> attention(const AttentionLayout& layout, Functions functions, const Matrix<float>& qkv);
/// Returns the result for some query rows, which are the rows `at` of the whole matrix. `keys` has the first rows of
/// the whole matrix, up to the last row that the queries see. Every row has the same bits as in the result of the whole
/// matrix.
Matrix<float> attention(const AttentionLayout& layout, Functions functions, const Matrix<float>& queries,
                        std::span<const std::int64_t> at, const Matrix<float>& keys);

/// Returns, element by element, how far the attention of any matrix within `bound` of `qkv` may be from that of `qkv`.
Matrix<double> attention_spread(const AttentionLayout& layout, const Matrix<double>& qkv, const Matrix<double>& bound);

}  // namespace commfuse::validate
