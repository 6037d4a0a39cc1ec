// SPDX-License-Identifier: Apache-2.0
#include "sim/score/step_case.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/config/catalogue.h"
#include "model/config_error.h"

namespace commfuse::score {

StepScorer::StepScorer(Context& context) : context_(context), rank_sigma_(load_jitter("default").rank_sigma.value) {}

StepScorer::Answer StepScorer::predict(const StepCase& one, const FoundMachine& node, std::string_view prose) {
  Answer answer;
  answer.why_not = node.why_not;
  if (node.machine == nullptr) {
    return answer;
  }
  const std::int64_t per_node = node.machine->gpus_per_node;
  const auto nodes = static_cast<int>((one.plan.gpus() + per_node - 1) / per_node);
  const FoundMachine found = context_.machines.over_nodes(*node.machine, nodes, prose);
  answer.why_not = found.why_not;
  answer.machine = found.machine;
  if (found.machine == nullptr) {
    return answer;
  }
  StepPoint point{.model = &one.model, .machine = found.machine, .plan = one.plan, .framework = one.framework};
  if (one.strategy != nullptr) {
    point.strategies = {one.strategy};
  }
  point.rank_sigma = one.gpus_differ ? rank_sigma_ : 0.0;
  try {
    require_possible(point);
    SiteTimes& sites = sites_.try_emplace(found.machine, structures_, *found.machine).first->second;
    answer.step = predict_step(point, sites);
    LayerCost layer(point, sites);
    answer.layer = {layer.forward(false).after({}, {}).device, layer.backward(false).after({}, {}).device};
  } catch (const ConfigError& error) {
    answer.why_not = error.what();
  }
  return answer;
}

std::string remark_on_spread() {
  return fmt::format(
      "All GPUs wait for the slowest: the expected largest of as many lognormal factors with sigma {} "
      "(`configs/jitter/default.yaml`, a prior).",
      load_jitter("default").rank_sigma.value);
}

}  // namespace commfuse::score
