// SPDX-License-Identifier: Apache-2.0
// Difference between default predictions, whose prices are fixed, and predictions of the dynamic engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

inline constexpr std::string_view engine_agreement_schema = "commfuse.engine_agreement/1";

/// Agreement on one machine. A point is a number of ranks and of tokens; a pair is a strategy at a point, simulated
/// both ways.
struct EngineAgreement {
  std::string machine;
  std::vector<std::int64_t> ranks;
  std::int64_t points = 0;
  std::vector<double> differences;  ///< |static / dynamic - 1| of the time of each pair
  std::int64_t winners = 0;         ///< points where at least one of the two ways of simulation names a winner
  /// Points where the winner of one simulation does not even tie in the other, for example "8 ranks, seq 2K: commfuse
  /// wins, dynamic sliced is the fastest".
  std::vector<std::string> conflicts;
};

/// Limit that all machines together must meet.
struct AgreementBar {
  std::string_view what;
  double bar = 0.0;
  double reached = 0.0;
  bool is_share = true;  ///< false for a count

  [[nodiscard]] bool met() const { return reached <= bar; }
};

/// Returns the limits on the median and largest difference of all pairs, and on conflicts.
std::vector<AgreementBar> agreement_bars(std::span<const EngineAgreement> machines);

}  // namespace commfuse
