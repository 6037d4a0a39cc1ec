// SPDX-License-Identifier: Apache-2.0
// Predicts whole models: a training step, a prefill or a decoding step, with every requested strategy.
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

/// Returns the degrees, batch and dtypes of a whole model's settings. Does not check whether the plan is possible.
TrainingPlan training_plan_of(const Settings& settings);

/// Predicts the rows of points. Keeps simulated sites, so that each is simulated once for all points with the same
/// layer shape. Use one object per thread.
class StepPoints {
 public:
  /// The library must outlive this object and must have loaded everything that the settings of all points name.
  explicit StepPoints(const Library& library);
  StepPoints(const StepPoints&) = delete;
  StepPoints& operator=(const StepPoints&) = delete;
  ~StepPoints();

  /// Returns one row per strategy, after the row of a named framework and before those of the implementations in the
  /// setting `as`; for decoding, after the row of an engine that sums whole outputs. An implementation that cannot run
  /// has a row with the reason, and so has a strategy without a schedule (for example, because it cannot split so few
  /// tokens), unless the user named it for a step or a prefill. A plan that exceeds the memory has a row like any
  /// other. Throws ConfigError for a plan whose settings clash, and for such a named strategy. Requires `wanted` to be
  /// the settings of a whole model.
  [[nodiscard]] std::vector<StepRow> rows(const Settings& wanted);
  /// Returns rows(); for a plan whose settings clash, returns one row with the reason.
  [[nodiscard]] std::vector<StepRow> rows_or_reason(const Settings& wanted);

  /// Returns the evidence of a training step. `measured.settings` must name the framework, or the only strategy, under
  /// which the step ran. Throws ConfigError if the settings name neither, have another scope or have `uncertainty` off,
  /// for a plan whose settings clash, and for a time that require_within_peak() refuses.
  [[nodiscard]] StepEvidence evidence_of(const MeasuredStep& measured);
  /// Corrects all later rows by the evidence, which also lowers their uncertainty. The rows then throw ConfigError for
  /// another machine, for anything but a training step, and with `uncertainty` off.
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
