// SPDX-License-Identifier: Apache-2.0
// The fastest of many plans, without playing the pipelines of all.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/step/step.h"

namespace commfuse {

/// A plan with what it takes.
struct TunedPlan {
  TrainingPlan plan;
  StepPrediction step;
  std::optional<double> error{};  ///< One standard error of the time, relative; nothing where nobody asked.
  /// That it takes less time than the fastest other one of those looked at; nothing where nobody asked.
  std::optional<double> win_probability{};
  double correction = 1.0;  ///< What its time was multiplied by, where a step was measured.
  bool ties = false;        ///< With the fastest of those looked at, or is it.
};

struct FastestPlans {
  std::vector<TunedPlan> best;  ///< The fastest first; of equals the one that was named first.
  std::size_t priced = 0;       ///< Plans whose pipeline was played.
};

/// At most `most` of the plans, each in the place of the point's. They are priced in order of what their time cannot be
/// below, until no other can be among the best. Throws and requires as predict_step of each.
FastestPlans fastest_plans(StepPoint point, const std::vector<TrainingPlan>& plans, SiteTimes& times, std::size_t most);

}  // namespace commfuse
