// SPDX-License-Identifier: Apache-2.0
// Tells which points have schedules, without pricing them: the sites are those that site_cost.cpp and layer_cost.cpp
// simulate. The test PlansHaveSchedulesExactlyWhereStepsArePredicted compares the answers with predictions.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/config/implementation.h"
#include "model/strategies/strategies.h"
#include "model/workload/layers.h"
#include "sim/step/layer_sites.h"
#include "sim/step/step.h"

namespace commfuse {

namespace {

bool shares_tokens_of(const TrainingPlan& plan) { return plan.sequence_parallel && plan.tensor > 1; }

/// Returns the framework's implementation if it runs the GEMM that the framework lists as `named`, by a schedule for
/// `scope`; otherwise null. Also null if the framework lists no GEMMs: a GEMM without a schedule then has an exposed
/// collective.
const Implementation* implementation_of(const StepPoint& point, Scope named, Scope scope) {
  const Implementation* const implementation = point.framework.implementation.get();
  const std::optional<std::vector<Scope>>& sites = point.framework.implementation_sites;
  const bool is_named = sites && std::ranges::find(*sites, named) != sites->end();
  const bool runs =
      implementation != nullptr && shares_tokens_of(point.plan) && is_named &&
      covers(*implementation, kinds_of(scope).front()) &&
      refusal_of(*implementation, *point.machine, static_cast<std::int32_t>(point.plan.tensor), point.plan.dtype)
          .empty();
  return runs ? implementation : nullptr;
}

/// Returns whether one of the point's strategies has a schedule for the site, whose strategy is ignored.
bool has_schedule(const StepPoint& point, SitePoint site, SiteTimes& sites) {
  return std::ranges::any_of(point.strategies, [&](const Strategy* strategy) {
    site.strategy = strategy;
    return sites.has_schedule(site);
  });
}

/// Returns the sites of the layers. Without strategies, the backward sites are whole even if the plan separates weight
/// gradients, because a framework lists a GEMM by the name of its whole backward site.
std::vector<LayerSite> asked_sites(const StepPoint& point) {
  TrainingPlan plan = point.plan;
  if (point.strategies.empty()) {
    plan.schedule = PipelineSchedule::one_forward_one_backward;
  }
  return layer_sites(*point.model, plan);
}

}  // namespace

bool has_schedules(const StepPoint& point, SiteTimes& sites) {
  if (!shares_tokens_of(point.plan)) {
    const bool has_block = simulates_ulysses(point) && layer_counts(*point.model).attention > 0;
    return !has_block || has_schedule(point, ulysses_point(point.plan, *point.model), sites);
  }
  return std::ranges::all_of(asked_sites(point), [&](const LayerSite& layer_site) {
    SitePoint site = site_point(point.plan, layer_site.shape, layer_site.scope);
    if (!point.strategies.empty()) {
      return has_schedule(point, site, sites);
    }
    // In backward passes, an implementation runs only the gradient of an input, a site of its own.
    const std::optional<LayerSite> gradient =
        layer_site.backward ? std::optional(input_gradient({&layer_site.shape, layer_site.projection})) : std::nullopt;
    if (gradient) {
      site = site_point(point.plan, gradient->shape, gradient->scope);
    }
    const Scope named = scope_of(layer_site.projection, layer_site.backward);
    site.implementation = implementation_of(point, named, gradient ? gradient->scope : layer_site.scope);
    if (site.implementation == nullptr) {
      return true;
    }
    site.strategy = site.implementation->strategy;
    return sites.has_schedule(site);
  });
}

}  // namespace commfuse
