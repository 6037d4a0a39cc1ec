// SPDX-License-Identifier: Apache-2.0
// Changes that would alter an answer: other links, other schedules, a slow node, another price; and the sensitivity to
// each input.
#pragma once

#include <vector>

#include "model/hardware/link_rates.h"
#include "model/record/capacity_plan.h"
#include "sim/plan/kind_planner.h"
#include "sim/plan/run_spread.h"

namespace commfuse {

/// All changes to one answer: the same count of GPUs of the same kind. Schedules at sites are chosen anew for every
/// change.
class WhatIfs {
 public:
  /// Requires that the run is one of the planner's; `step_error` is that of its kind.
  WhatIfs(KindPlanner& planner, const CapacityRun& answer, double step_error);

  /// Returns every change with the best layout under it; for the slow node the layout stays.
  std::vector<WhatIf> all_changes();

  /// Returns tokens per second over the rate of the links in a node, and of the network if the machine has one; filled
  /// by all().
  [[nodiscard]] const std::vector<RateCurve>& curves() const { return curves_; }

  /// Returns the effect of each input, lower and higher by the plan's share of change, with the layout unchanged.
  std::vector<Sensitivity> sensitivities();

 private:
  [[nodiscard]] RunTerms terms(double tokens_per_second) const;
  [[nodiscard]] WhatIf changed(std::string change, const TrainingPlan& layout, double step_s,
                               const RunTerms& terms) const;
  void add_schedules(std::vector<WhatIf>& changes);
  void add_slow_node(std::vector<WhatIf>& changes);
  void add_rates(std::vector<WhatIf>& changes, bool network);
  void add_prices(std::vector<WhatIf>& changes) const;
  void find_hiding_rate(RateCurve& curve, bool network);
  [[nodiscard]] double rate_with(const LinkRates& rates) const;
  [[nodiscard]] double rate_slowed(double slowdown);
  [[nodiscard]] double rate_on(const Machine& machine, double spread_of_gpus = 1.0) const;
  [[nodiscard]] double rate_with_latencies(double share) const;

  KindPlanner& planner_;
  const CapacityRun& answer_;
  RunDraws draws_;
  double change_;
  double correction_;  ///< Factor of a measured step on the answer's time, which changes to it share.
  std::vector<RateCurve> curves_;
};

}  // namespace commfuse
