// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went, in whole picoseconds. One implementation for predicted and measured runs.
#pragma once

#include "model/cost/costs.h"
#include "model/program/recorder.h"

namespace commfuse {

/// makespan = compute + slicing + stretch + local + exposed, exactly, and exposed = head + bubble + tail - local.
/// Head, bubble and tail are whole gaps: the strategy's own adds, packs and copies inside them are `local`.
struct Breakdown {
  Duration makespan{};
  Duration compute{};  // essential work, unsliced
  Duration slicing{};  // what cutting it costs: priced slices, undisturbed, less `compute`
  Duration stretch{};  // busy less priced: interference and jitter; negative when compute lanes overlap
  Duration local{};    // strategy-made adds, packs, shuffles, copies outside essential work
  Duration exposed{};  // neither essential nor local work is running
  Duration head{};     // before the first essential op
  Duration bubble{};   // between essential ops
  Duration tail{};     // after the last essential op
  Duration busy{};     // essential work is running
  friend bool operator==(const Breakdown&, const Breakdown&) = default;
};

/// Of one rank, with its own last end as the makespan. `priced` is the sum of its essential ops' prices.
Breakdown breakdown_of(const RankSummary& summary, Duration compute, Duration priced);

/// Of the rank whose last op ends last, the lowest on ties; and the mean and the largest exposed time over all ranks.
struct Analysis {
  Rank critical_rank = 0;
  Breakdown critical;
  Duration mean_exposed{};  // rounded down to a picosecond
  Duration max_exposed{};
};
Analysis analyse(const Program& program, const Costs& costs, const Recorder& recorder);

}  // namespace commfuse
