// SPDX-License-Identifier: Apache-2.0
// Changes that would alter an answer (other links, other schedules, a slow node, another price), and the sensitivity of
// the answer to each input.
#pragma once

#include <vector>

#include "model/hardware/link_rates.h"
#include "model/record/capacity_plan.h"
#include "sim/plan/kind_planner.h"
#include "sim/plan/run_spread.h"

namespace commfuse {

/// Evaluates changes to one answer, with the number and kind of GPUs unchanged. Every change chooses the schedules at
/// sites again. Changes that choose a layout again compare the fastest layout after the change with the fastest one
/// before it: the time of the answer changes by that ratio, whatever broke a tie.
class WhatIfs {
 public:
  /// `answer` must be a run of the planner's kind, and `step_error` the step error of that kind.
  WhatIfs(KindPlanner& planner, const CapacityRun& answer, double step_error);

  /// Returns every change, with its best layout; a slow node and other prices keep the answer's layout.
  std::vector<WhatIf> all_changes();

  /// Returns tokens per second as a function of the rate of the links in a node and, if the machine has a network, of
  /// the network. all_changes() fills the curves.
  [[nodiscard]] const std::vector<RateCurve>& curves() const { return curves_; }

  /// Returns the effect of each input, lowered and raised by the plan's `change` share, with the layout unchanged.
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
  double correction_;        ///< Factor of a measured step on the answer's time; applies to every change too.
  double over_the_fastest_;  ///< The answer's time over the predicted time of the fastest layout.
  std::vector<RateCurve> curves_;
};

}  // namespace commfuse
