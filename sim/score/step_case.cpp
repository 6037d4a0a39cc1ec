// SPDX-License-Identifier: Apache-2.0
#include "sim/score/step_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/config/catalogue.h"
#include "model/config_error.h"

namespace commfuse::score {

void StepCase::run_by(const Framework& chosen) {
  framework = chosen;
  strategy = chosen.tensor_overlap;
  plan = with_defaults_of(chosen, plan);
}

StepScorer::StepScorer(Context& context) : context_(context), jitter_(load_jitter("default")) {}

StepScorer::Answer StepScorer::predict(const StepCase& step, const FoundMachine& node, std::string_view prose) {
  Answer answer;
  answer.why_not = node.why_not;
  if (node.machine == nullptr) {
    return answer;
  }
  const std::int64_t per_node = node.machine->gpus_per_node;
  const std::int64_t most_nodes =
      std::numeric_limits<int>::max() / per_node;  // Larger plans do not fit, and are refused.
  const auto nodes = static_cast<int>(std::min((step.plan.gpus() + per_node - 1) / per_node, most_nodes));
  const FoundMachine cluster = context_.machines.over_nodes(*node.machine, nodes, prose);
  answer.why_not = cluster.why_not;
  answer.machine = cluster.machine;
  if (cluster.machine == nullptr) {
    return answer;
  }
  StepPoint point{.model = &step.model, .machine = cluster.machine, .plan = step.plan, .framework = step.framework};
  if (step.strategy != nullptr) {
    point.strategies = {step.strategy};
  }
  if (step.gpus_differ) {
    point.rank_sigma = jitter_.rank_sigma.value;
    point.communication_sigma = jitter_.communication_sigma.value;
  }
  try {
    require_possible(point);
    SiteTimes& sites = sites_.try_emplace(cluster.machine, structures_, *cluster.machine).first->second;
    answer.step = predict_step(point, sites);
    point.communication_sigma = 0.0;  // the time of a single layer is a median, like the prices of its kernels
    LayerCost layer(point, sites);
    const LayerKind first = layer_runs(step.model).front().kind;
    answer.layer = {layer.forward(first).after({}, {}).device, layer.backward(first).after({}, {}).device};
  } catch (const ConfigError& error) {
    answer.why_not = error.what();
  }
  return answer;
}

std::string remark_on_spread() {
  return fmt::format(
      "All GPUs wait for the slowest GPU, and a collective waits for its slowest member. The slowdown is the expected "
      "maximum of one lognormal factor per GPU or member, with sigma {} for a GPU's kernels and {} for a member's "
      "communication "
      "(`configs/jitter/default.yaml`, a prior).",
      load_jitter("default").rank_sigma.value, load_jitter("default").communication_sigma.value);
}

Transformer gpt(const GptShape& shape) {
  return {.name = fmt::format("gpt of {} x {}", shape.layers, shape.hidden),
          .layers = shape.layers,
          .hidden = shape.hidden,
          .ffn = 4 * shape.hidden,
          .heads = shape.heads,
          .kv_heads = shape.heads,
          .head_dim = std::max<std::int64_t>(1, shape.hidden / shape.heads),
          .vocab = shape.vocab,
          .norm = Norm::layer,
          .biases = true,
          .positions = shape.seq};
}

}  // namespace commfuse::score
