// SPDX-License-Identifier: Apache-2.0
// Points that are whole models: a training step, a prefill or a decoding step, by every strategy that was asked for.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/record/step_row.h"
#include "model/workload/training_plan.h"
#include "sim/point/request.h"
#include "sim/step/measured_step.h"

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

  /// Of a training step by its framework, or by the one strategy that its settings name. Throws ConfigError where they
  /// name neither, are of another scope or have `uncertainty` off, and for a plan that clashes.
  [[nodiscard]] StepEvidence evidence_of(const MeasuredStep& measured);
  /// Rows are given the evidence from now on: corrected, and surer. Throws ConfigError, when they are asked for, for
  /// another machine, for what is no training step, and with `uncertainty` off.
  void correct_by(StepEvidence evidence) { evidence_ = std::move(evidence); }

 private:
  class Sites;
  struct Prepared;
  [[nodiscard]] Prepared prepared(const Settings& wanted);
  const Library& library_;
  std::optional<StepEvidence> evidence_;
  std::unique_ptr<Sites> sites_;
};

}  // namespace commfuse
