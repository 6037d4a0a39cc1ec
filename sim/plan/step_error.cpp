// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/step_error.h"

#include <algorithm>
#include <cmath>

#include "model/hardware/raised.h"
#include "model/math/functions.h"
#include "sim/step/step_uncertainty.h"

namespace commfuse {

namespace {

/// Returns the step's time for a layout whose sites keep their schedules.
Duration step_on(const Machine& machine, StepPoint point, const std::vector<TunedSite>& sites,
                 StructureCache& structures) {
  SiteTimes times(structures, machine);
  for (const TunedSite& site : sites) {
    const SitePoint at = site_point(point.plan, site.shape, site.scope);
    times.prefer(at, times.again(at, site.best));
  }
  point.machine = &machine;
  return predict_step(point, times).time;
}

}  // namespace

std::vector<CapacityDoubt> step_doubts(const LayoutSearch& search, const FoundLayout& layout,
                                       const std::vector<TunedSite>& sites, StructureCache& structures) {
  const StepPoint point = search.point_of(layout.plan);
  const std::vector<NamedParameter> names = parameters_of(search.machine());
  const double nominal = to_seconds(step_on(search.machine(), point, sites, structures));
  std::vector<CapacityDoubt> doubts;
  for (const RaisedMachine& raised : raised_by_error(search.machine())) {
    const double time = to_seconds(step_on(raised.machine, point, sites, structures));
    const NamedParameter& name = names[raised.parameter];
    if (time != nominal) {
      doubts.push_back({name.name, std::string(name_of(name.provenance)), math::log(time / nominal)});
    }
  }
  std::stable_sort(doubts.begin(), doubts.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.effect) > std::abs(b.effect); });
  return doubts;
}

double model_error_of(const PlanFile& file, const Transformer& model, const LayoutTerms& terms) {
  constexpr double without_framework = 0.13;
  const StepResidual residual = step_residual(model);
  const double measured =
      std::sqrt(residual.of_machine * residual.of_machine + residual.of_layout * residual.of_layout);
  return file.model_error.value_or(terms.framework.name.empty() ? std::max(measured, without_framework) : measured);
}

double step_error(const std::vector<CapacityDoubt>& doubts, double model_error) {
  double squares = model_error * model_error;
  for (const CapacityDoubt& doubt : doubts) {
    squares += doubt.effect * doubt.effect;
  }
  return std::sqrt(squares);
}

}  // namespace commfuse
