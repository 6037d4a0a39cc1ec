// SPDX-License-Identifier: Apache-2.0
// Finds the fastest of many plans without simulating all their pipelines.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "model/analysis/verdict.h"
#include "sim/step/step.h"

namespace commfuse {

/// A plan with its time.
struct TunedPlan {
  TrainingPlan plan;
  StepPrediction step;
  std::optional<double> error{};  ///< One standard error of the time, relative; nothing unless requested.
  /// Probability that it takes less time than the fastest other plan considered; nothing unless requested.
  std::optional<double> win_probability{};
  double correction = 1.0;  ///< Factor on its time, if a step was measured.
  bool ties = false;        ///< It is the fastest of the plans considered, or ties with it.
};

struct FastestPlans {
  std::vector<TunedPlan> best;  ///< Fastest first; among equals, the first in the given order.
  std::size_t priced = 0;       ///< Plans whose pipeline was simulated.
};

/// Number of fastest plans among which a tie is broken.
inline constexpr std::size_t compared_plans = 12;

/// Returns what breaks a tie between the plan and others.
TiedPlan tied_plan(const TunedPlan& plan);

/// Returns at most `limit` plans, fastest first, each evaluated in place of the point's own plan. Up to `limit`, every
/// plan that takes at most 1 + `within` times as long as the fastest is among them; slower plans may be missing. Plans
/// are priced in order of their lower bounds, until no other plan can be among these. Throws and requires as
/// predict_step() does for each plan.
FastestPlans fastest_plans(StepPoint point, const std::vector<TrainingPlan>& plans, SiteTimes& times, std::size_t limit,
                           double within = std::numeric_limits<double>::infinity());

}  // namespace commfuse
