// SPDX-License-Identifier: Apache-2.0
// Converts a row of a table of training steps to inputs of the simulator, and predicts the step.
#pragma once

#include <cstdint>
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
  /// Applies the framework and its choices for the plan. Columns that override these choices must be applied
  /// afterwards.
  void run_by(const Framework& chosen);
  bool gpus_differ = true;  ///< GPUs vary as in configs/jitter/default.yaml, and all wait for the slowest.
};

/// The time of a step, in seconds.
struct StepSeconds {
  double measured = 0.0;
  double predicted = 0.0;
};

/// Predicts steps on machines with as many nodes as each step needs.
class StepScorer {
 public:
  explicit StepScorer(Context& context);

  /// The prediction of a step, or the reason why there is none.
  struct Answer {
    std::optional<StepPrediction> step;
    std::optional<std::pair<Duration, Duration>> layer;  ///< Times of the first layer's forward and backward pass.
    std::string why_not;
    const Machine* machine = nullptr;
  };
  Answer predict(const StepCase& step, const FoundMachine& node, std::string_view prose);

 private:
  Context& context_;
  StructureCache structures_;
  std::map<const Machine*, SiteTimes> sites_;
  Jitter jitter_;
};

/// Maximum number of layers that a row may state, as in model files. Predictions with millions of layers would take
/// hours.
inline constexpr std::int64_t max_layers = 10'000;

struct GptShape {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t vocab = 0;
  std::int64_t seq = 0;  ///< tokens per sequence, each with a learned position
};

/// Returns GPT as Megatron-LM trains it, with separate weights for the logits.
Transformer gpt(const GptShape& shape);

/// Returns a remark about the variation between GPUs in steps with `gpus_differ`.
std::string remark_on_spread();

}  // namespace commfuse::score
