// SPDX-License-Identifier: Apache-2.0
// One row of a table of training steps as the simulator takes it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/score/kinds.h"
#include "sim/step/step.h"

namespace commfuse::score {

struct StepCase {
  Transformer model;
  TrainingPlan plan;
  Framework framework;
  const Strategy* strategy = nullptr;
  /// As the framework runs it, with what it chooses of a plan; the columns of a table that say otherwise come after.
  void run_by(const Framework& chosen);
  bool gpus_differ = true;  ///< All wait for the slowest GPU, with the spread of configs/jitter/default.yaml.
};

/// Seconds of one step.
struct StepSeconds {
  double measured = 0.0;
  double predicted = 0.0;
};

/// Predicts cases on machines of as many nodes as they need.
class StepScorer {
 public:
  explicit StepScorer(Context& context);

  /// Seconds of a step, or why there are none. `prose` may name the network.
  struct Answer {
    std::optional<StepPrediction> step;
    std::optional<std::pair<Duration, Duration>> layer;  ///< Forward and backward pass of one dense layer.
    std::string why_not;
    const Machine* machine = nullptr;
  };
  Answer predict(const StepCase& one, const FoundMachine& node, std::string_view prose);

 private:
  Context& context_;
  StructureCache structures_;
  std::map<const Machine*, SiteTimes> sites_;
  Jitter jitter_;
};

/// A sentence for the page: the spread of GPUs that cases with `gpus_differ` have.
std::string remark_on_spread();

}  // namespace commfuse::score
