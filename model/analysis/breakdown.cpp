// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/breakdown.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

Breakdown breakdown_of(const RankSummary& summary, const EssentialPrices& prices) {
  Breakdown result;
  result.makespan = summary.last_end.time_since_epoch();
  result.compute = prices.unsliced;
  result.busy = summary.busy;
  if (summary.has_essential) {
    result.head = summary.first_essential.time_since_epoch();
    result.tail = summary.last_end - summary.last_essential;
    result.bubble = (summary.last_essential - summary.first_essential) - summary.busy;
  } else {
    result.head = result.makespan;
  }
  result.local = summary.covered - summary.busy;
  result.exposed = result.head + result.bubble + result.tail - result.local;
  result.slicing = prices.sliced - prices.unsliced;
  result.stretch = result.busy - prices.sliced;
  check(result.makespan == result.compute + result.slicing + result.stretch + result.local + result.exposed,
        "the parts of a makespan add up to it");
  return result;
}

Analysis analyse(const Program& program, const Costs& costs, const Recorder& recorder) {
  Analysis analysis;
  Duration sum{};
  for (Rank rank = 0; rank < recorder.ranks(); ++rank) {
    const Breakdown rank_breakdown = breakdown_of(
        recorder.summary(rank), {.unsliced = costs.compute, .sliced = essential_time(program, costs, rank)});
    if (rank == 0 || rank_breakdown.makespan > analysis.critical.makespan) {
      analysis.critical_rank = rank;
      analysis.critical = rank_breakdown;
    }
    sum += rank_breakdown.exposed;
    analysis.max_exposed = std::max(analysis.max_exposed, rank_breakdown.exposed);
  }
  analysis.mean_exposed = sum / std::max(recorder.ranks(), 1);
  return analysis;
}

}  // namespace commfuse
