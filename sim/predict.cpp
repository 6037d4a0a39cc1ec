// SPDX-License-Identifier: Apache-2.0
#include "sim/predict.h"

#include <fmt/format.h>

#include <optional>

#include "model/check.h"
#include "model/config_error.h"

namespace commfuse {

void require_possible(const Point& point) {
  const int gpus = total_gpus(point.machine);
  if (point.ranks > gpus) {
    throw ConfigError(fmt::format("{} ranks do not fit {}, which has {} GPUs; choose ranks up to {}", point.ranks,
                                  point.machine.name, gpus, gpus));
  }
  require_supported(point.machine.accelerator, point.dtype);
  for (const SiteName site : sites_of(point.scope)) {
    require_divisible(point.model, site, point.load().tokens(), point.ranks);
  }
}

Prediction Predictor::predict(const Point& point, const Strategy& strategy, const StrategyOptions& options) {
  if (const std::string refusal = refusal_of(strategy, kinds_of(point.scope), options, point.ranks); !refusal.empty()) {
    throw ConfigError(refusal);
  }
  const Structure& structure = structures_.get({point.scope, point.model.gated_mlp, point.ranks, &strategy, options});
  const Program& program = structure.program();
  const Sizes sizes = bind_sizes(program, quantities_of(point.model, point.load()));
  const Costs costs = price(program, structure.meetings, sizes, point.machine, point.price);
  engine_.run(structure.plan, costs, recorder_);

  Prediction prediction{.strategy = &strategy, .options = options};
  prediction.analysis = analyse(program, costs, recorder_);
  prediction.ideal = makespan(structure.plan, with_free_communication(program, costs));
  prediction.link = makespan(structure.plan, with_free_compute(program, costs));
  const Duration total = prediction.analysis.critical.makespan;
  check(total >= prediction.ideal && total >= prediction.link, "no run is faster than its bounds");
  const Flops flops = flops_of(point.scope, point.model, point.load());
  const FlopsPerSecond peak = point.machine.accelerator.dense_peak(point.dtype);
  prediction.mfu = flops.count / (to_seconds(total) * point.ranks * peak.value);
  prediction.buffers = bytes_per_rank(program, sizes);
  prediction.structure = &structure;
  return prediction;
}

Prediction Predictor::predict_best(const Point& point, const Strategy& strategy,
                                   const std::vector<StrategyOptions>& candidates) {
  std::optional<Prediction> best;
  std::string refusal;
  for (const StrategyOptions& options : candidates) {
    try {
      const Prediction candidate = predict(point, strategy, options);
      if (!best || candidate.analysis.critical.makespan < best->analysis.critical.makespan) {
        best = candidate;
      }
    } catch (const ConfigError& error) {
      if (refusal.empty()) {
        refusal = error.what();
      }
    }
  }
  if (!best) {
    throw ConfigError(refusal);
  }
  return *best;
}

Duration Predictor::makespan(const Plan& plan, const Costs& costs) {
  engine_.run(plan, costs, recorder_);
  return recorder_.makespan().time_since_epoch();
}

}  // namespace commfuse
