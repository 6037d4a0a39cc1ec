// SPDX-License-Identifier: Apache-2.0
// Converts one row of a table of training steps to the simulator's inputs.
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
  /// Applies the framework with its choices of a plan; columns of a table that say otherwise are applied later.
  void run_by(const Framework& chosen);
  bool gpus_differ = true;  ///< All wait for the slowest GPU, with the variation of configs/jitter/default.yaml.
};

/// Seconds of one step.
struct StepSeconds {
  double measured = 0.0;
  double predicted = 0.0;
};

/// Predicts cases on machines with as many nodes as they need.
class StepScorer {
 public:
  explicit StepScorer(Context& context);

  /// Seconds of a step, or the reason why there are none. `prose` may name the network.
  struct Answer {
    std::optional<StepPrediction> step;
    std::optional<std::pair<Duration, Duration>> layer;  ///< Forward and backward pass of one dense layer.
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

struct GptShape {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t vocab = 0;
  std::int64_t seq = 0;  ///< tokens of a sequence, each with a learned position
};

/// Returns GPT as Megatron-LM trains it, with logits that have weights of their own.
Transformer gpt(const GptShape& shape);

/// Returns a sentence for the page about the variation between GPUs in cases with `gpus_differ`.
std::string remark_on_spread();

}  // namespace commfuse::score
