// SPDX-License-Identifier: Apache-2.0
// The inner loops of sampling, for the processor at hand. All variants give the same bits: integers are exact, and
// doubles see the same multiplications and additions in the same order, never contracted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/random/quantile_table.h"

namespace commfuse {

/// Philox counters of a run of draws that differ in their first two words. Arrays of `blocks` words, rounded up to a
/// multiple of four, that may be read to their ends.
struct PhiloxRun {
  const std::uint32_t* groups = nullptr;  ///< First words: sample / 4.
  const std::uint32_t* ranks = nullptr;   ///< Second words.
  std::size_t blocks = 0;
  std::uint32_t step = 0;
  std::uint32_t purpose = 0;
  std::uint64_t key = 0;
};

/// What every time of a run is made with.
struct StretchRun {
  std::span<const QuantileTable::Cell> cells;
  std::uint32_t stalls = 0;  ///< Words below this stall: their factor is 1 here.
  std::uint32_t last = 0;    ///< Largest word of the table, that is a word less stalls.
  double nominal = 0.0;      ///< Whole picoseconds.
};

struct JitterLanes {
  /// Four words a block, one block after another; room for `blocks` rounded up to a multiple of four.
  void (*words)(const PhiloxRun& run, std::uint32_t* words);
  /// times[i] = nominal x rank_factors[i] x factor(words[i]), to the nearest whole picosecond (half to even), for
  /// products below 2^52. Whether any word stalls. Requires a count that is a multiple of four.
  bool (*stretch)(const StretchRun& run, const std::uint32_t* words, const double* rank_factors, std::size_t count,
                  double* times);
};

/// Plain C++.
JitterLanes portable_jitter_lanes();
/// With AVX2 where the processor has it.
JitterLanes fastest_jitter_lanes();

/// The nearest whole number, half to even, for 0 <= value < 2^52.
inline double to_whole(double value) {
  constexpr double two_to_52 = 4503599627370496.0;
  return (value + two_to_52) - two_to_52;
}

}  // namespace commfuse
