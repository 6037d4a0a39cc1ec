// SPDX-License-Identifier: Apache-2.0
// Attention on matrices, as the interpreter and the unfused operation share it.
#pragma once

#include <cstdint>
#include <span>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "validate/values/arithmetic.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// How q, k and v lie in a matrix. A block of `qkv` columns is [q heads | k heads | v heads] and makes a block of `out`
/// columns; query heads share kv heads in equal runs. Row = position * batch + sequence.
struct AttentionLayout {
  std::int64_t qkv = 0;
  std::int64_t out = 0;
  std::int64_t head = 0;
  std::int64_t batch = 0;
  bool causal = false;
};

/// Whether heads, kv heads and sequences come out whole.
bool holds_whole_heads(const Sizes& sizes, const AttentionShape& shape);
/// Requires holds_whole_heads().
AttentionLayout layout_of(const Sizes& sizes, const AttentionShape& shape);

/// softmax(q k^T / sqrt(head)) v, in double. Functions::integer: the sum of (q k) v over the
/// visible rows, an integer, wrapped into [-2, 2]: every q, k and v makes a difference.
Matrix<double> attention(const AttentionLayout& layout, Functions functions, const Matrix<double>& qkv);
/// The same, rounded to fp32 once.
Matrix<float> attention(const AttentionLayout& layout, Functions functions, const Matrix<float>& qkv);
/// The same for some query rows, which are rows `at` of the whole; `keys` are rows 0, 1, 2 and so on of it, as many as
/// the queries see. Every row gets the same bits as in the whole.
Matrix<float> attention(const AttentionLayout& layout, Functions functions, const Matrix<float>& queries,
                        std::span<const std::int64_t> at, const Matrix<float>& keys);

/// How far attention of a matrix within `bound` of `qkv` may be from attention of `qkv`, element by element.
Matrix<double> attention_spread(const AttentionLayout& layout, const Matrix<double>& qkv, const Matrix<double>& bound);

}  // namespace commfuse::validate
