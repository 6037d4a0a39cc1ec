// SPDX-License-Identifier: Apache-2.0
#include "sim/step/step_uncertainty.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "model/math/functions.h"
#include "model/workload/sites.h"
#include "sim/step/layer_sites.h"
#include "sim/step/woven.h"

namespace commfuse {

namespace {

/// A site of the plan and its schedule on the unchanged machine.
struct ChosenSite {
  Transformer shape;
  Scope scope = Scope::qkv;
  GemmPrecision precision;
  SiteTime schedule;
};

/// Returns the site in the form in which LayerCost requests its time. The chosen site must outlive the result.
SitePoint point_of_chosen(const StepPoint& point, const ChosenSite& site) {
  SitePoint asked = site_point(point.plan, site.shape, site.scope);
  asked.dtype = site.precision.dtype;
  asked.weight_bits = site.precision.weight_bits;
  return asked;
}

std::vector<ChosenSite> chosen_sites(const StepPoint& point, SiteTimes& times, bool backward) {
  std::vector<ChosenSite> sites;
  if (point.plan.sequence_parallel && !point.strategies.empty()) {
    const std::optional<Transformer> copied = with_copied_heads(*point.model, point.plan.tensor);
    for (const LayerSite& layer_site : layer_sites(copied ? *copied : *point.model, point.plan)) {
      if (backward || !layer_site.backward) {
        ChosenSite site{layer_site.shape, layer_site.scope, precision_of(point, layer_site.weights), {}};
        site.schedule = times.fastest(point_of_chosen(point, site), point.strategies);
        sites.push_back(std::move(site));
      }
    }
  }
  return sites;
}

/// Returns, as text for comparison, everything that determines which schedules and kernels a step uses, except the
/// schedules of tensor ranks.
std::string layout_in_words(const StepPoint& point) {
  const TrainingPlan& plan = point.plan;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", point.model->name,
                     plan.tensor, plan.sequence_parallel, plan.pipeline, plan.interleave, name_of(plan.schedule),
                     plan.data, plan.context, word_of(context_exchange_choices, plan.context_exchange), plan.ulysses,
                     plan.expert, static_cast<int>(plan.zero), plan.global_batch, plan.micro_batch, plan.seq,
                     name_of(plan.recompute), plan.fused_attention, plan.dropout, name_of(plan.optimizer),
                     name_of(plan.dtype), name_of(plan.gradient_dtype), plan.overlap_gradients);
}

/// Returns the implementation whose costs affect the point; null if it has none.
const Implementation* kernels_of(const StepPoint& point) {
  if (point.implemented.kernels != nullptr) {
    const Implementation* const kernels = point.implemented.kernels;
    return point.implemented.gemms.empty() && !replaces_sums(*kernels) ? nullptr : kernels;
  }
  return point.strategies.empty() ? point.framework.implementation.get() : nullptr;
}

/// Calls `add` with the doubt and the time of the point for each raised cost of its implementation, and for the
/// residual of their fit.
template <class Add>
void add_implementation_doubts(const StepPoint& point, SiteTimes& times, StepTime time,
                               std::span<const RaisedKernels> raised_kernels, const Add& add) {
  const Implementation* const kernels = kernels_of(point);
  if (kernels == nullptr) {
    return;
  }
  for (const RaisedKernels& raised : raised_kernels) {
    StepPoint raised_point = point;
    if (point.implemented.kernels != nullptr) {
      raised_point.implemented.kernels = raised.kernels.get();
    } else {  // The framework owns its implementation; here it only refers to the raised one.
      raised_point.framework.implementation = {std::shared_ptr<const Implementation>{}, raised.kernels.get()};
    }
    add(ImplementationDoubt{kernels->name, raised.cost}, time.of(raised_point, times));
  }
  StepPoint slower_point = point;
  slower_point.implemented.slowdown = 1.0 + kernels->costs.on(*point.machine).residual.value;
  add(ImplementationDoubt{kernels->name, {}}, time.of(slower_point, times));
}

}  // namespace

RaisedSteps::RaisedSteps(const Machine& machine, StructureCache& structures) : machines_(raised_for_steps(machine)) {
  for (const RaisedMachine& raised : machines_) {
    times_.push_back(std::make_unique<SiteTimes>(structures, *raised.machine));
    steps_.push_back({raised.parameter, &*raised.machine, times_.back().get()});
  }
}

std::vector<RaisedFramework> raised_by_error(const Framework& framework) {
  std::vector<RaisedFramework> raised;
  if (const Parameter<Duration>& issue = framework.issue; issue.standard_error > 0.0) {
    raised.push_back({"host.issue", issue.provenance, framework});
    raised.back().framework.issue.value = from_seconds(to_seconds(issue.value) * (1.0 + issue.standard_error));
  }
  if (const Parameter<double>& power = framework.misaligned_power; power.standard_error > 0.0) {
    raised.push_back({"kernels.misaligned_power", power.provenance, framework});
    raised.back().framework.misaligned_power.value *= 1.0 + power.standard_error;
  }
  return raised;
}

std::vector<RaisedKernels> raised_by_error(const Implementation& kernels, const Machine& machine) {
  std::vector<RaisedKernels> raised;
  for (const RaisedImplementation& costs : raised_by_error(kernels.costs.on(machine))) {
    auto copy = std::make_unique<Implementation>(kernels);
    copy->costs.generations.fill(costs.sites);
    raised.push_back({costs.name, std::move(copy)});
  }
  return raised;
}

StepResidual step_residual(const Transformer& model) {
  return model.experts ? StepResidual{.of_machine = 0.40, .of_layout = 0.14}
                       : StepResidual{.of_machine = 0.06, .of_layout = 0.04};
}

StepResidual pass_residual(const StepPoint& point) {
  if (point.model->experts) {
    return {.of_machine = step_residual(*point.model).of_machine};
  }
  return {.of_machine = point.cached > 0 ? 0.20 : 0.06};
}

Uncertainty step_uncertainty(const StepPoint& point, SiteTimes& times, StepTime time,
                             const std::vector<RaisedStep>& raised,
                             std::optional<std::span<const RaisedKernels>> raised_kernels) {
  Uncertainty uncertainty;
  const Duration nominal = time.of(point, times);
  const auto add_if_longer = [&](auto source, Duration longer) {
    if (longer != nominal) {
      Doubt& doubt = uncertainty.doubts.emplace_back();
      doubt.of = std::move(source);
      doubt.effect = math::log(to_seconds(longer) / to_seconds(nominal));
    }
  };
  const std::vector<ChosenSite> sites = chosen_sites(point, times, time.backward);
  for (const RaisedStep& step : raised) {
    for (const ChosenSite& site : sites) {
      const SitePoint at = point_of_chosen(point, site);
      step.times->prefer(at, step.times->again(at, site.schedule));
    }
    StepPoint raised_point = point;
    raised_point.machine = step.machine;
    add_if_longer(step.parameter, time.of(raised_point, *step.times));
  }
  if (raised_kernels) {
    add_implementation_doubts(point, times, time, *raised_kernels, add_if_longer);
  }
  for (const RaisedFramework& raised_framework : raised_by_error(point.framework)) {
    StepPoint raised_point = point;
    raised_point.framework = raised_framework.framework;
    add_if_longer(FrameworkDoubt{point.framework.name, raised_framework.parameter}, time.of(raised_point, times));
  }
  const StepResidual residual = time.backward ? step_residual(*point.model) : pass_residual(point);
  const auto add_doubt = [&](std::string layout, double effect) {
    if (effect > 0.0) {
      Doubt& doubt = uncertainty.doubts.emplace_back();
      doubt.of = StepDoubt{std::move(layout)};
      doubt.effect = effect;
    }
  };
  add_doubt("", residual.of_machine);
  add_doubt(layout_in_words(point), residual.of_layout);
  std::ranges::sort(uncertainty.doubts, std::less{}, &Doubt::of);
  return uncertainty;
}

}  // namespace commfuse
