// SPDX-License-Identifier: Apache-2.0
// erfc and its slope at points 1/64 apart, from 0.5 to 3.
#pragma once

#include <array>
#include <cstddef>

namespace commfuse::math::detail {

constexpr int erfc_table_first = 32;  ///< in steps of 1/64
constexpr std::size_t erfc_table_size = 161;

/// erfc(r) = value + value_tail; slope = 2/sqrt(pi) exp(-r^2).
struct ErfcEntry {
  double value;
  double value_tail;
  double slope;
};
extern const std::array<ErfcEntry, erfc_table_size> erfc_table;

}  // namespace commfuse::math::detail
