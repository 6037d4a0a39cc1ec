// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/step_error.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "model/hardware/raised.h"
#include "model/math/functions.h"
#include "sim/step/step_uncertainty.h"

namespace commfuse {

namespace {

/// A site and the schedule that the step uses there.
struct ScheduledSite {
  SitePoint site;
  SiteTime schedule;
};

/// Returns the schedules with which the point's step runs the sites: those of its strategies. Returns none without
/// strategies, because then no site is simulated. The sites must outlive the result.
std::vector<ScheduledSite> scheduled_sites(const StepPoint& point, const std::vector<TunedSite>& sites,
                                           SiteTimes& times) {
  std::vector<ScheduledSite> scheduled;
  for (const TunedSite& tuned : sites) {
    if (!point.strategies.empty()) {
      const SitePoint site = site_point(point.plan, tuned.shape, tuned.scope);
      scheduled.push_back({site, times.fastest(site, point.strategies)});
    }
  }
  return scheduled;
}

/// Returns the time of a step on `machine` with the schedules of `sites`.
Duration step_on(const Machine& machine, StepPoint point, const std::vector<ScheduledSite>& sites,
                 StructureCache& structures) {
  SiteTimes times(structures, machine);
  for (const ScheduledSite& scheduled : sites) {
    times.prefer(scheduled.site, times.again(scheduled.site, scheduled.schedule));
  }
  point.machine = &machine;
  return step_time(point, times);
}

void sort_by_effect(std::vector<CapacityDoubt>& doubts) {
  std::stable_sort(doubts.begin(), doubts.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.effect) > std::abs(b.effect); });
}

}  // namespace

std::vector<CapacityDoubt> step_doubts(LayoutSearch& search, const FoundLayout& layout,
                                       const std::vector<TunedSite>& tuned, StructureCache& structures) {
  const StepPoint point = search.point_of(layout.plan);
  const std::vector<ScheduledSite> sites = scheduled_sites(point, tuned, search.times());
  const std::vector<NamedParameter> names = parameters_of(search.machine());
  const double nominal = to_seconds(step_on(search.machine(), point, sites, structures));
  std::vector<CapacityDoubt> doubts;
  for (const RaisedMachine& raised : raised_beside_decoding(search.machine())) {
    const double time = to_seconds(step_on(*raised.machine, point, sites, structures));
    const NamedParameter& name = names[raised.parameter];
    if (time != nominal) {
      doubts.push_back({name.name, std::string(name_of(name.provenance)), math::log(time / nominal)});
    }
  }
  for (const RaisedFramework& raised : raised_by_error(point.framework)) {
    StepPoint raised_point = point;
    raised_point.framework = raised.framework;
    const double time = to_seconds(step_on(search.machine(), raised_point, sites, structures));
    if (time != nominal) {
      doubts.push_back(
          {"framework." + raised.parameter, std::string(name_of(raised.provenance)), math::log(time / nominal)});
    }
  }
  sort_by_effect(doubts);
  return doubts;
}

LayoutCorrection correct_layout(LayoutSearch& search, FoundLayout& layout, const RaisedSteps& raised,
                                const StepEvidence& evidence) {
  constexpr StepTime step{&step_time};
  const StepPoint point = search.point_of(layout.plan);
  const Uncertainty uncertainty = step_uncertainty(point, search.times(), step, raised.steps());
  const double factor = evidence.correction(uncertainty);
  const double limited = limited_to_peak({factor, layout.step.mfu});
  layout.step = corrected(layout.step, factor);
  StepPercentiles& tail = layout.tail;
  for (Duration* time : {&tail.equal_gpus, &tail.p50, &tail.p95, &tail.p99, &tail.p99_9}) {
    *time = from_seconds(to_seconds(*time) * limited);
  }
  return {.factor = factor, .remaining = given(uncertainty, evidence.evidence)};
}

std::vector<CapacityDoubt> doubts_of(const Uncertainty& uncertainty, const Machine& machine) {
  const std::vector<NamedParameter> names = parameters_of(machine);
  std::vector<CapacityDoubt> doubts;
  for (const Doubt& doubt : uncertainty.doubts) {
    if (const auto* parameter = std::get_if<std::size_t>(&doubt.of)) {
      const NamedParameter& name = names[*parameter];
      doubts.push_back({name.name, std::string(name_of(name.provenance)), doubt.effect});
    }
  }
  sort_by_effect(doubts);
  return doubts;
}

double model_error_of(const Uncertainty& uncertainty) {
  double squares = 0.0;
  for (const Doubt& doubt : uncertainty.doubts) {
    squares += std::holds_alternative<std::size_t>(doubt.of) ? 0.0 : doubt.effect * doubt.effect;
  }
  return std::sqrt(squares);
}

ModelError model_error_of(const PlanFile& file, const Transformer& model, const LayoutTerms& terms) {
  constexpr double before_settings = 0.13;
  const StepResidual residual = step_residual(model);
  const double of_run = std::sqrt(residual.of_machine * residual.of_machine + residual.of_layout * residual.of_layout);
  if (file.model_error) {
    return {*file.model_error, ModelErrorSource::file, of_run};
  }
  if (terms.framework.name.empty() && of_run < before_settings) {
    return {before_settings, ModelErrorSource::steps_before_settings, of_run};
  }
  return {of_run, ModelErrorSource::measured_steps, of_run};
}

double step_error(const std::vector<CapacityDoubt>& doubts, double model_error) {
  double squares = model_error * model_error;
  for (const CapacityDoubt& doubt : doubts) {
    squares += doubt.effect * doubt.effect;
  }
  return std::sqrt(squares);
}

}  // namespace commfuse
