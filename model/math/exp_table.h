// SPDX-License-Identifier: Apache-2.0 AND MIT
// Copyright (c) 2018, Arm Limited. The MIT licence of this file is in model/math/LICENSES.
// The part that exp and pow share: exp of a sum, from musl 1.2.3 (exp.c, pow.c).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace commfuse::math::detail {

constexpr int exp_table_bits = 7;
constexpr std::size_t exp_table_size = std::size_t{1} << exp_table_bits;

/// 2^(i/128) is about the double of `scale_bits` + i * 2^45, times 1 + the double of `tail_bits`.
struct ScaleEntry {
  std::uint64_t tail_bits;
  std::uint64_t scale_bits;
};
extern const std::array<ScaleEntry, exp_table_size> exp_table;

/// Added to the scaled exponent, it makes the result negative.
constexpr std::uint32_t negative_result = 0x800U << exp_table_bits;

/// Returns exp(x + tail), negative if `sign_bias` is negative_result and not 0. Requires x finite and |tail| < 2^-15
/// and |tail| <= |x|. Returns infinity or 0 if the result leaves the range of doubles.
double exp_of_sum(double x, double tail, std::uint32_t sign_bias);

}  // namespace commfuse::math::detail
