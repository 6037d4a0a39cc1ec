// SPDX-License-Identifier: Apache-2.0
// How far default predictions, whose prices are fixed, are from those of the dynamic engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

inline constexpr std::string_view engine_agreement_schema = "commfuse.engine_agreement/1";

/// On one machine. A point is a number of ranks and of tokens; a pair is a strategy at a point, played both ways.
struct EngineAgreement {
  std::string machine;
  std::vector<std::int64_t> ranks;
  std::int64_t points = 0;
  std::vector<double> differences;     ///< |static / dynamic - 1| of the time of each pair.
  std::int64_t winners = 0;            ///< Points where one side or both name a winner.
  std::vector<std::string> conflicts;  ///< "8 ranks, seq 2K: commfuse wins, dynamic sliced": not even a tie there.
};

/// What all machines together must reach.
struct AgreementBar {
  std::string_view what;
  double bar = 0.0;
  double reached = 0.0;
  bool is_share = true;  ///< Else a count.

  [[nodiscard]] bool met() const { return reached <= bar; }
};

/// Median and largest difference of all pairs, and conflicts.
std::vector<AgreementBar> agreement_bars(std::span<const EngineAgreement> machines);

}  // namespace commfuse
