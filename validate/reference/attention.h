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

/// The places of q, k and v in a matrix. A block of `qkv` columns is [q heads | k heads | v heads] and makes a block of
/// `out` columns; query heads share kv heads in equal runs. Row = position * batch + sequence.
struct AttentionLayout {
  std::int64_t qkv = 0;
  std::int64_t out = 0;
  std::int64_t head = 0;
  std::int64_t batch = 0;
  bool causal = false;
};

/// Returns whether heads, kv heads and sequences come out whole.
bool holds_whole_heads(const Sizes& sizes, const AttentionShape& shape);
/// Requires holds_whole_heads().
AttentionLayout layout_of(const Sizes& sizes, const AttentionShape& shape);

/// Returns softmax(q k^T / sqrt(head)) v, in double. With Functions::integer: the sum of (q k) v over the visible rows,
/// an integer, wrapped into [-2, 2]: every q, k and v makes a difference.
Matrix<double> attention(const AttentionLayout& layout, Functions functions, const Matrix<double>& qkv);
/// Returns the same result, rounded to fp32 once.
Matrix<float> attention(const AttentionLayout& layout, Functions functions, const Matrix<float>& qkv);
/// Returns the result for some query rows, which are rows `at` of the whole; `keys` are its first rows, as many as the
/// queries see. Every row gets the same bits as in the whole.
Matrix<float> attention(const AttentionLayout& layout, Functions functions, const Matrix<float>& queries,
                        std::span<const std::int64_t> at, const Matrix<float>& keys);

/// Returns, element by element, how far attention of a matrix within `bound` of `qkv` may be from attention of `qkv`.
Matrix<double> attention_spread(const AttentionLayout& layout, const Matrix<double>& qkv, const Matrix<double>& bound);

}  // namespace commfuse::validate
