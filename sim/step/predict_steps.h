// SPDX-License-Identifier: Apache-2.0
// Points that are whole models: a training step, a prefill or a decoding step, by every strategy that was asked for.
#pragma once

#include <memory>
#include <vector>

#include "model/record/step_row.h"
#include "model/workload/training_plan.h"
#include "sim/point/request.h"

namespace commfuse {

/// The degrees, batch and dtypes of a whole model's settings. Whether the plan is possible is not looked at.
TrainingPlan training_plan_of(const Settings& settings);

/// Keeps what was played, so that points that share layer shapes play them once. For one thread.
class StepPoints {
 public:
  /// The library outlives it and has loaded what the settings of all points name.
  explicit StepPoints(const Library& library);
  StepPoints(const StepPoints&) = delete;
  StepPoints& operator=(const StepPoints&) = delete;
  ~StepPoints();

  /// One row a strategy. Memory that does not suffice is a result; so is, of a decoding step, a strategy that cannot
  /// cut so few tokens: a row with its reason. Throws ConfigError for a plan that clashes. Requires a whole model.
  [[nodiscard]] std::vector<StepRow> rows(const Settings& settings);
  /// The same, but of a plan that clashes one row with the reason.
  [[nodiscard]] std::vector<StepRow> rows_or_reason(const Settings& settings);

 private:
  class Sites;
  const Library& library_;
  std::unique_ptr<Sites> sites_;
};

}  // namespace commfuse
