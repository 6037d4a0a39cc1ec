// SPDX-License-Identifier: Apache-2.0
// The simulator's result for a setting: the fastest schedule of the strategy, or a whole model that uses the strategy.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/record/step_row.h"
#include "sim/point/point_runner.h"
#include "sim/step/predict_steps.h"
#include "tests/laws/setting.h"

namespace commfuse::laws {

/// Returns a time in picoseconds. Doubles are exact up to 2^53.
inline double picoseconds(Duration time) { return static_cast<double>(time.count()); }

struct Outcome {
  std::string reason;  ///< Reason why the setting cannot be run; the other members are valid only if it is empty.
  bool whole_model = false;
  bool rates_change = false;  ///< Faults or dynamic interference: the engine's 1% applies.
  bool meets_others = false;  ///< Dynamic interference: an op's rate depends on the ops that run with it.
  double time = 0.0;
  double memory = 0.0;  ///< Bytes of one GPU.
  double mfu = 0.0;
  const Machine* machine = nullptr;  ///< Machine of `point`, or of the simulator.

  // Results of a layer.
  std::shared_ptr<const Point> point;
  std::optional<Prediction> prediction;
  std::vector<Duration> samples;  ///< Makespans under jitter.

  // Results of a whole model.
  StepRow step;

  [[nodiscard]] bool runs() const { return reason.empty(); }
  [[nodiscard]] const Breakdown& parts() const { return prediction->analysis.critical; }
  [[nodiscard]] double cell(std::string_view name) const { return step.number(name); }
};

/// Runs settings on one thread and caches what they share.
class Simulator {
 public:
  /// Runs a setting; the result depends on nothing else. Only layers can have changed machines. The simulator must
  /// outlive the schedules of its results.
  Outcome run(const Setting& setting);

 private:
  void load(const Settings& settings);
  Outcome run_layer(const Settings& settings, const Setting& setting);
  Outcome run_step(const Settings& settings, const Setting& setting);
  const Machine& edited_machine(const Settings& settings, const std::vector<Edit>& edits);
  const std::vector<Candidates>& candidates_at(const Settings& settings);

  Library library_;
  std::set<std::string> loaded_;
  std::map<std::string, Machine> edited_machines_;
  StructureCache structures_;
  Predictor predictor_{structures_};
  StepPoints steps_{library_};
  std::map<std::string, std::vector<Candidates>> candidates_;
};

}  // namespace commfuse::laws
