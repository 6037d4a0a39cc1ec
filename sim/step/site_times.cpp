// SPDX-License-Identifier: Apache-2.0
#include "sim/step/site_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "model/check.h"
#include "model/config_error.h"
#include "model/cost/price.h"
#include "sim/point/request.h"
#include "sim/step/layer_sites.h"
#include "sim/step/stream.h"

namespace commfuse {

namespace {

void remove_issue_cost(Link& link) {
  link.peer.issue_cost.value = Duration::zero();
  link.collective.issue_cost.value = Duration::zero();
}

/// A step lasts far longer than a burst, so all its GEMMs run at the sustained efficiency.
void heat(MatrixUnit& unit) {
  unit.gemm.burst_efficiency.value *= unit.gemm.sustained_share.value;
  unit.gemm.sustained_share.value = 1.0;
}

/// Returns the schedules in the site's dtype; with fp8 GEMMs, everything else uses 16 bits.
std::vector<StrategyOptions> schedules_of(const Strategy& strategy, const SitePoint& point) {
  StrategyOptions base;
  base.dtype = point.dtype == DType::fp8 ? DType::bf16 : point.dtype;
  if (point.implementation != nullptr) {
    return schedules_of(*point.implementation, point.scope, point.ranks, base.dtype);
  }
  return schedules_to_try(strategy, kinds_of(point.scope), point.ranks, base);
}

}  // namespace

SitePoint site_point(const TrainingPlan& plan, const Transformer& shape, Scope scope) {
  return {.model = &shape,
          .scope = scope,
          .ranks = static_cast<std::int32_t>(plan.tensor),
          .tokens = plan.tokens_per_pass(),
          .dtype = plan.dtype,
          .strategy = nullptr};
}

SitePoint ulysses_point(const TrainingPlan& plan, const Transformer& shape) {
  SitePoint block = site_point(plan, shape, Scope::ulysses);
  block.ranks = static_cast<std::int32_t>(plan.ulysses);
  block.tokens = plan.micro_batch * plan.seq;
  block.batch = plan.micro_batch;
  return block;
}

SiteTimes::SiteTimes(StructureCache& structures, const Machine& machine, Counts counts)
    : predictor_(structures), machine_(machine), counts_(counts) {
  machine_.accelerator.launch_cost.value = Duration::zero();
  machine_.accelerator.eager_cost.value = Duration::zero();
  machine_.accelerator.event_cost.value = Duration::zero();
  for (std::optional<MatrixUnit>& unit : machine_.accelerator.matrix_units) {
    if (unit) {
      heat(*unit);
    }
  }
  remove_issue_cost(machine_.link);
  if (machine_.network) {
    remove_issue_cost(*machine_.network);
  }
}

SiteTimes::Key SiteTimes::key_of(const SitePoint& point) {
  const Transformer& model = *point.model;
  return {point.scope,
          point.ranks,
          point.tokens,
          point.batch,
          point.dtype,
          point.strategy,
          point.implementation,
          point.window.keys,
          point.window.chunked,
          point.weight_bits,
          model.hidden,
          model.ffn,
          model.heads,
          model.kv_heads,
          model.head_dim,
          model.qkv_columns(),
          model.attended_columns(),
          model.gated_mlp};
}

Point SiteTimes::point_at(const SitePoint& point) const {
  Point layer_point{.model = *point.model, .machine = machine_};
  layer_point.scope = point.scope;
  layer_point.ranks = point.ranks;
  layer_point.batch = point.batch;
  layer_point.seq = point.tokens / point.batch;
  layer_point.dtype = point.dtype;
  layer_point.price.window = point.window;
  layer_point.price.weight_bits = point.weight_bits;
  if (point.dtype == DType::fp8) {
    layer_point.dtype = DType::bf16;
    layer_point.price.gemm_dtype = DType::fp8;
  }
  return point.implementation == nullptr ? layer_point : priced_as(layer_point, *point.implementation);
}

SiteTime SiteTimes::time_of(const Prediction& prediction) const {
  const Duration compute = prediction.analysis.critical.compute;
  const Duration compute_only = std::min(compute, prediction.ideal);
  return {.time = counts_ == Counts::compute ? compute_only : prediction.analysis.critical.makespan,
          .kernels = launched_ops(prediction.structure->program()),
          .compute = compute,
          .ideal = prediction.ideal,
          .strategy = prediction.strategy,
          .options = prediction.options};
}

SiteTime SiteTimes::of(const SitePoint& point) {
  const Key key = key_of(point);
  if (const auto known = known_.find(key); known != known_.end()) {
    return known->second;
  }
  const std::vector<SiteKind> kinds = kinds_of(point.scope);
  if (!applies(*point.strategy, kinds)) {
    throw ConfigError(fmt::format("strategy {} has no schedule for {}; choose another strategy, such as serial",
                                  point.strategy->name, name_of(point.scope)));
  }
  const Prediction best =
      predictor_.predict_best(point_at(point), *point.strategy, schedules_of(*point.strategy, point));
  return known_.emplace(key, time_of(best)).first->second;
}

bool SiteTimes::has_schedule(const SitePoint& point) {
  if (known_.contains(key_of(point))) {
    return true;
  }
  if (!applies(*point.strategy, kinds_of(point.scope))) {
    return false;
  }
  const Point layer_point = point_at(point);
  return std::ranges::any_of(schedules_of(*point.strategy, point), [&](const StrategyOptions& options) {
    return predictor_.refusal(layer_point, *point.strategy, options).empty();
  });
}

SiteTime SiteTimes::again(SitePoint point, const SiteTime& schedule) {
  point.strategy = schedule.strategy;
  const std::pair key{key_of(point), schedule.options};
  if (const auto known = again_.find(key); known != again_.end()) {
    return known->second;
  }
  const Prediction prediction = predictor_.predict(point_at(point), *schedule.strategy, schedule.options);
  return again_.emplace(key, time_of(prediction)).first->second;
}

std::vector<SampledSite> SiteTimes::sampled(const SitePoint& point, std::span<const Strategy* const> strategies,
                                            const MonteCarloOptions& options) {
  Point layer_point = point_at(point);
  layer_point.monte_carlo = options;
  std::vector<Prediction> candidates;
  for (const Strategy* strategy : strategies) {
    for (const StrategyOptions& schedule : schedules_of(*strategy, point)) {
      try {
        candidates.push_back(predictor_.predict(layer_point, *strategy, schedule));
      } catch (const ConfigError&) {  // the strategy cannot split so few tokens
        continue;
      }
    }
  }
  const auto makespan = [](const Prediction& prediction) { return prediction.analysis.critical.makespan; };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Prediction& a, const Prediction& b) { return makespan(a) < makespan(b); });
  std::vector<SampledSite> sampled;
  std::optional<Duration> least_p99;
  for (const Prediction& candidate : candidates) {
    if (candidate.strategy == &serial_strategy || !least_p99 || makespan(candidate) <= *least_p99) {
      sampled.push_back({time_of(candidate), predictor_.sampled(layer_point, candidate)});
      least_p99 = std::min(least_p99.value_or(Duration::max()), sampled.back().times.p99);
    }
  }
  return sampled;
}

Duration SiteTimes::slowed(SitePoint point, const SiteTime& schedule, const Slowdown& slowdown) {
  if (slowdown == Slowdown{}) {
    return schedule.time;
  }
  if (counts_ == Counts::compute) {
    return stream_time(slowdown.kernels * to_seconds(schedule.time));
  }
  point.strategy = schedule.strategy;
  const auto [known, is_new] = slowed_.try_emplace({key_of(point), schedule.options, slowdown});
  if (is_new) {
    known->second = predictor_.slowed(point_at(point), *schedule.strategy, schedule.options, slowdown);
  }
  return known->second;
}

SampledTimes SiteTimes::sampled(SitePoint point, const SiteTime& schedule, const MonteCarloOptions& options,
                                double slowdown) {
  Point layer_point = point_at(point);
  layer_point.monte_carlo = options;
  return predictor_.sampled(layer_point, predictor_.predict(layer_point, *schedule.strategy, schedule.options),
                            slowdown);
}

void SiteTimes::prefer(SitePoint point, const SiteTime& schedule) {
  point.strategy = nullptr;
  preferred_[key_of(point)] = schedule;
}

SiteTime SiteTimes::fastest(SitePoint point, std::span<const Strategy* const> strategies) {
  check(!strategies.empty(), "the fastest strategy needs at least one candidate");
  point.strategy = nullptr;
  if (const auto preferred = preferred_.find(key_of(point)); preferred != preferred_.end()) {
    return preferred->second;
  }
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
  std::vector<const Strategy*> candidates;
  for (const Strategy& strategy : strategies()) {
    const bool everywhere = std::all_of(all_sites.begin(), all_sites.end(), [&](SiteName name) {
      return applies(strategy, kinds_of(scope_of(name, false))) && applies(strategy, kinds_of(scope_of(name, true)));
    });
    if (everywhere && applies(strategy, kinds_of(Scope::ulysses)) && !strategy.bound) {
      candidates.push_back(&strategy);
    }
  }
  return candidates;
}

}  // namespace commfuse
