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
  bool ties = false;        ///< True for the fastest of the plans considered, and for plans that tie with it.
};

struct FastestPlans {
  std::vector<TunedPlan> best;  ///< Fastest first; among equals, the first in the given order.
  std::size_t priced = 0;       ///< Number of plans whose pipeline was simulated.
};

/// Number of fastest plans among which a tie is broken.
inline constexpr std::size_t compared_plans = 12;

/// Returns the properties of the plan that break a tie.
TiedPlan tied_plan(const TunedPlan& plan);

/// Returns at most `limit` plans, fastest first, each evaluated in place of the point's own plan. Up to `limit`, every
/// plan that takes at most 1 + `within` times as long as the fastest is among them; slower plans may be missing. Plans
/// are priced in order of their lower bounds, until no other plan can be among the returned plans. Requires what
/// predict_step() requires for each plan, and throws as predict_step() does.
FastestPlans fastest_plans(StepPoint point, const std::vector<TrainingPlan>& plans, SiteTimes& times, std::size_t limit,
                           double within = std::numeric_limits<double>::infinity());

}  // namespace commfuse
