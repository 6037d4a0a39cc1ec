// SPDX-License-Identifier: Apache-2.0
// Breakdown of the time of a run, in whole picoseconds. Predicted and measured runs use the same implementation.
#pragma once

#include "model/cost/costs.h"
#include "model/program/recorder.h"

namespace commfuse {

/// The parts add up: makespan = compute + slicing + stretch + local + exposed, exactly, and exposed = head + bubble +
/// tail - local. Head, bubble and tail are whole gaps; the strategy's own adds, packs and copies inside them are
/// `local`.
struct Breakdown {
  Duration makespan{};
  Duration compute{};  // essential work, unsliced
  Duration slicing{};  // cost of slicing: the undisturbed price of the slices minus `compute`
  Duration stretch{};  // busy minus priced: interference and jitter; negative when compute lanes overlap
  Duration local{};    // the strategy's adds, packs, shuffles and copies outside essential work
  Duration exposed{};  // time in which neither essential nor local work runs
  Duration head{};     // time before the first essential op
  Duration bubble{};   // time between essential ops
  Duration tail{};     // time after the last essential op
  Duration busy{};     // time in which essential work runs
  friend bool operator==(const Breakdown&, const Breakdown&) = default;
};

/// Prices of a rank's essential work.
struct EssentialPrices {
  Duration unsliced{};  ///< Costs::compute.
  Duration sliced{};    ///< Sum of the prices of the rank's essential ops.
};

/// Returns the breakdown of one rank, with its own last end as the makespan.
Breakdown breakdown_of(const RankSummary& summary, const EssentialPrices& prices);

/// Breakdown of the rank whose last op finishes last (the lowest rank on ties), and the mean and the largest exposed
/// time over all ranks.
struct Analysis {
  Rank critical_rank = 0;
  Breakdown critical;
  Duration mean_exposed{};  // rounded down to a picosecond
  Duration max_exposed{};
};
Analysis analyse(const Program& program, const Costs& costs, const Recorder& recorder);

}  // namespace commfuse
