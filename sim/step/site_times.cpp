// SPDX-License-Identifier: Apache-2.0
#include "sim/step/site_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "model/check.h"
#include "model/config_error.h"

namespace commfuse {

namespace {

void issue_free(Link& link) {
  link.peer.issue_cost.value = Duration::zero();
  link.collective.issue_cost.value = Duration::zero();
}

/// A step lasts far longer than a burst, so all its products run at the sustained share of power.
void heat(MatrixUnit& unit) {
  unit.gemm.burst_efficiency.value *= unit.gemm.sustained_share.value;
  unit.gemm.sustained_share.value = 1.0;
}

}  // namespace

SiteTimes::SiteTimes(StructureCache& structures, const Machine& machine, Counts counts)
    : predictor_(structures), machine_(machine), counts_(counts) {
  machine_.accelerator.launch_cost.value = Duration::zero();
  machine_.accelerator.event_cost.value = Duration::zero();
  for (std::optional<MatrixUnit>& unit : machine_.accelerator.matrix_units) {
    if (unit) {
      heat(*unit);
    }
  }
  issue_free(machine_.link);
  if (machine_.network) {
    issue_free(*machine_.network);
  }
}

SiteTime SiteTimes::of(const SitePoint& point) {
  const Transformer& model = *point.model;
  const Key key{point.scope, point.ranks, point.tokens,   point.dtype,    point.strategy, model.hidden,
                model.ffn,   model.heads, model.kv_heads, model.head_dim, model.gated_mlp};
  if (const auto known = known_.find(key); known != known_.end()) {
    return known->second;
  }
  const std::vector<SiteKind> kinds = kinds_of(point.scope);
  if (!applies(*point.strategy, kinds)) {
    throw ConfigError(fmt::format("strategy {} has no schedule for {}; choose another strategy, such as serial",
                                  point.strategy->name, name_of(point.scope)));
  }
  Point played{.model = model, .machine = machine_};
  played.scope = point.scope;
  played.ranks = point.ranks;
  played.seq = point.tokens;
  played.dtype = point.dtype;
  const Prediction best =
      predictor_.predict_best(played, *point.strategy, schedules_to_try(*point.strategy, kinds, point.ranks));
  const Duration compute = best.analysis.critical.compute;
  const SiteTime time{.time = counts_ == Counts::compute ? compute : best.analysis.critical.makespan,
                      .kernels = static_cast<std::int64_t>(best.structure->program().ops.size()),
                      .compute = compute,
                      .ideal = best.ideal,
                      .strategy = point.strategy,
                      .options = best.options};
  return known_.emplace(key, time).first->second;
}

SiteTime SiteTimes::fastest(SitePoint point, std::span<const Strategy* const> strategies) {
  check(!strategies.empty(), "the fastest is one of some");
  std::optional<SiteTime> best;
  std::string refusal;
  for (const Strategy* strategy : strategies) {
    point.strategy = strategy;
    try {
      const SiteTime time = of(point);
      best = best && best->time <= time.time ? best : time;
    } catch (const ConfigError& error) {
      refusal = refusal.empty() ? error.what() : refusal;
    }
  }
  if (!best) {
    throw ConfigError(refusal);
  }
  return *best;
}

std::vector<const Strategy*> strategies_for_steps() {
  std::vector<const Strategy*> all;
  for (const Strategy& strategy : strategies()) {
    const bool everywhere = std::all_of(site_scopes.begin(), site_scopes.end(),
                                        [&](Scope scope) { return applies(strategy, kinds_of(scope)); });
    if (everywhere && !strategy.bound) {
      all.push_back(&strategy);
    }
  }
  return all;
}

}  // namespace commfuse
