// SPDX-License-Identifier: Apache-2.0
// Inner loops of sampling, specialized for the processor. All variants compute the same bits: integers are exact, and
// doubles go through the same multiplications and additions in the same order, never contracted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/random/quantile_table.h"

namespace commfuse {

/// Philox counters of a run of draws that differ in their first two words. The arrays have `blocks` words, rounded up
/// to a multiple of eight, and may be read to their ends.
struct PhiloxRun {
  const std::uint32_t* groups = nullptr;  ///< first words: sample / 4
  const std::uint32_t* ranks = nullptr;   ///< second words
  std::size_t blocks = 0;
  std::uint32_t step = 0;
  std::uint32_t purpose = 0;
  std::uint64_t key = 0;
};

/// Constants that all times of a run share.
struct StretchRun {
  std::span<const QuantileTable::Cell> cells;
  std::uint32_t stalls = 0;  ///< words below this number stall; their factor is 1 here
  std::uint32_t last = 0;    ///< largest index into the table; the index of a word is the word minus `stalls`
  double nominal = 0.0;      ///< in whole picoseconds
};

struct JitterLanes {
  /// Writes four words per block, one block after another. `words` needs space for `blocks` rounded up to a multiple of
  /// eight.
  void (*words)(const PhiloxRun& run, std::uint32_t* words);
  /// Computes times[i] = nominal x rank_factors[i] x factor(words[i]), to the nearest whole picosecond (half to even),
  /// for products below 2^52. Returns true if any word stalls. Requires `count` to be a multiple of four.
  bool (*stretch)(const StretchRun& run, const std::uint32_t* words, const double* rank_factors, std::size_t count,
                  double* times);
};

/// Returns the loops in plain C++.
JitterLanes portable_jitter_lanes();
/// Returns the loops whose instructions the processor supports, the fastest last: plain C++, AVX2, AVX-512.
std::vector<JitterLanes> supported_jitter_lanes();
/// Returns the last of supported_jitter_lanes().
JitterLanes fastest_jitter_lanes();

/// Returns the nearest whole number, half to even, for 0 <= value < 2^52.
inline double to_whole(double value) {
  constexpr double two_to_52 = 4503599627370496.0;
  return (value + two_to_52) - two_to_52;
}

}  // namespace commfuse
