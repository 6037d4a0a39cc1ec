// SPDX-License-Identifier: Apache-2.0
#include "sim/step/step_uncertainty.h"

#include <cmath>
#include <utility>

#include "model/math/functions.h"
#include "sim/step/layer_sites.h"

namespace commfuse {

namespace {

/// A site of the plan and its schedule on the machine as it is.
struct ChosenSite {
  Transformer shape;
  Scope scope = Scope::qkv;
  SiteTime schedule;
};

std::vector<ChosenSite> chosen_sites(const StepPoint& point, SiteTimes& times, bool backward) {
  std::vector<ChosenSite> sites;
  if (point.plan.sequence_parallel && !point.strategies.empty()) {
    for (const LayerSite& of : layer_sites(*point.model, point.plan)) {
      if (backward || !of.backward) {
        const SitePoint site = site_point(point.plan, of.shape, of.scope);
        sites.push_back({of.shape, of.scope, times.fastest(site, point.strategies)});
      }
    }
  }
  return sites;
}

}  // namespace

Uncertainty step_uncertainty(const StepPoint& point, SiteTimes& times, StepTime time,
                             const std::vector<RaisedStep>& raised) {
  Uncertainty uncertainty;
  const Duration nominal = time.of(point, times);
  const std::vector<ChosenSite> sites = chosen_sites(point, times, time.backward);
  for (const RaisedStep& one : raised) {
    for (const ChosenSite& site : sites) {
      const SitePoint at = site_point(point.plan, site.shape, site.scope);
      one.times->prefer(at, one.times->again(at, site.schedule));
    }
    StepPoint other = point;
    other.machine = one.machine;
    const Duration longer = time.of(other, *one.times);
    if (longer != nominal) {
      uncertainty.doubts.push_back({one.parameter, math::log(to_seconds(longer) / to_seconds(nominal))});
    }
  }
  return uncertainty;
}

}  // namespace commfuse
