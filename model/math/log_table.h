// SPDX-License-Identifier: Apache-2.0 AND MIT
// Copyright (c) 2018, Arm Limited. The MIT licence of this file is in model/math/LICENSES.
// Tables of log, log2 and pow, from musl 1.2.3 (log_data.h, log2_data.h, pow_data.h).
#pragma once

#include <array>
#include <cstddef>

namespace commfuse::math::detail {

constexpr int log_table_bits = 7;
constexpr int log2_table_bits = 6;
constexpr int pow_table_bits = 7;
constexpr std::size_t log_table_size = std::size_t{1} << log_table_bits;
constexpr std::size_t log2_table_size = std::size_t{1} << log2_table_bits;
constexpr std::size_t pow_table_size = std::size_t{1} << pow_table_bits;

/// One interval of the mantissa around c = center + center_tail.
struct LogEntry {
  double inverse;  ///< 1/c
  double log;      ///< log(c), or log2(c) in log2_table
  double center;
  double center_tail;
};

/// An interval for pow: 1/c is short, so that z/c - 1 is exact, and log(c) = log + log_tail.
struct PowEntry {
  double inverse;
  double log;
  double log_tail;
};

extern const std::array<LogEntry, log_table_size> log_table;
extern const std::array<LogEntry, log2_table_size> log2_table;
extern const std::array<PowEntry, pow_table_size> pow_table;

}  // namespace commfuse::math::detail
