// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/what_if.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "model/analysis/knee.h"
#include "model/hardware/raised.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::array rate_steps{0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0};
constexpr double plateau = 0.95;  // share of the tokens per second at the highest link rate
constexpr double hidden =
    1.01;  // communication counts as hidden if nearly free links are faster by at most this factor
constexpr double highest_rate = 16.0;  // relative to the machine's link

LinkRates rates_of(bool network, double times) {
  return network ? LinkRates{.network = times} : LinkRates{.node = times};
}

}  // namespace

WhatIfs::WhatIfs(KindPlanner& planner, const CapacityRun& answer, double step_error)
    : planner_(planner),
      answer_(answer),
      draws_(planner.draws(step_error)),
      change_(planner.file().change),
      correction_(planner.correction_at(answer.gpus)),
      over_the_fastest_(correction_ * (1.0 + answer.excess_over_fastest)) {}

RunTerms WhatIfs::terms(double tokens_per_second) const {
  return terms_of(planner_.file(), planner_.offer(), answer_.gpus, tokens_per_second);
}

WhatIf WhatIfs::changed(std::string change, const TrainingPlan& layout, double step_s, const RunTerms& terms) const {
  const RunSpread spread = draws_.spread_of(terms);
  return {.change = std::move(change),
          .layout = layout,
          .step_s = step_s,
          .days = spread.days,
          .cost = spread.cost,
          .days_share = spread.days.value / answer_.days.value - 1.0,
          .cost_share = answer_.cost.value > 0.0 ? spread.cost.value / answer_.cost.value - 1.0 : 0.0};
}

void WhatIfs::add_schedules(std::vector<WhatIf>& changes) {
  const auto add = [&](std::string change, const Strategy& strategy) {
    if (const auto layout = planner_.search().fastest(answer_.gpus, {&strategy})) {
      const StepPrediction step = corrected(layout->step, over_the_fastest_);
      changes.push_back(changed(std::move(change), layout->plan, to_seconds(step.time), terms(step.tokens_per_second)));
    }
  };
  add("serial collectives", serial_strategy);
  add("data slicing (CoC)", sliced_strategy);
  add("CommFuse at every site", commfuse_strategy);
}

double WhatIfs::rate_slowed(double slowdown) {
  StepPoint point = planner_.search().point_of(answer_.layout);
  point.slowdown = slowdown;
  return corrected(predict_step(point, planner_.search().times()), correction_).tokens_per_second;
}

void WhatIfs::add_slow_node(std::vector<WhatIf>& changes) {
  const double slower = planner_.file().slow_node;
  const double rate = rate_slowed(slower);
  const double step = answer_.step_s.value * answer_.tokens_per_second.value / rate;
  changes.push_back(changed(fmt::format("one node x{:g} slower", slower), answer_.layout, step, terms(rate)));
}

void WhatIfs::add_prices(std::vector<WhatIf>& changes) const {
  for (const double share : {-change_, change_}) {
    RunTerms other = terms(answer_.tokens_per_second.value);
    other.price *= 1.0 + share;
    changes.push_back(
        changed(fmt::format("price {:+g} %", 100.0 * share), answer_.layout, answer_.step_s.value, other));
  }
}

void WhatIfs::add_rates(std::vector<WhatIf>& changes, bool network) {
  RateCurve curve{.links = network ? "network" : "links"};
  for (const double factor : rate_steps) {
    if (factor == 1.0) {
      curve.points.push_back({factor, answer_.tokens_per_second.value});
      continue;
    }
    const Machine machine = with_link_rates(planner_.search().machine(), rates_of(network, factor));
    LayoutSearch search(planner_.search().model(), machine, planner_.structures(), planner_.search().terms());
    const auto layout = search.fastest(answer_.gpus, search.terms().strategies());
    if (!layout) {
      continue;
    }
    const StepPrediction step = corrected(layout->step, over_the_fastest_);
    const double rate = step.tokens_per_second;
    curve.points.push_back({factor, rate});
    WhatIf change =
        changed(fmt::format("{} x{:g}", curve.links, factor), layout->plan, to_seconds(step.time), terms(rate));
    const double saved = answer_.cost.value - change.cost.value;
    change.break_even_gpu_hour = saved / totals_of(terms(rate)).gpu_hours;
    change.break_even_gpu = saved / static_cast<double>(answer_.gpus);
    changes.push_back(std::move(change));
  }
  std::vector<CurvePoint> points;
  for (const RateCurve::Point& point : curve.points) {
    points.push_back({point.factor, point.tokens_per_second});
  }
  if (const auto knee = knee_of(points)) {
    curve.knee = points[*knee].x;
  }
  curve.plateau = plateau_of(points, plateau);
  find_hiding_rate(curve, network);
  curves_.push_back(std::move(curve));
}

/// Returns tokens per second with the answer's own layout on `machine`.
double WhatIfs::rate_on(const Machine& machine, double spread_of_gpus) const {
  SiteTimes times(planner_.structures(), machine);
  StepPoint point = planner_.search().point_of(answer_.layout);
  point.machine = &machine;
  point.rank_sigma *= spread_of_gpus;
  return corrected(predict_step(point, times), correction_).tokens_per_second;
}

double WhatIfs::rate_with(const LinkRates& rates) const {
  return rate_on(with_link_rates(planner_.search().machine(), rates));
}

/// Returns tokens per second with all link latencies longer by `share`.
double WhatIfs::rate_with_latencies(double share) const {
  Machine machine = planner_.search().machine();
  for (const NamedParameter& parameter : parameters_of(machine)) {
    const bool is_of_a_link = parameter.name.starts_with("link.") || parameter.name.starts_with("network.");
    if (is_of_a_link && parameter.name.ends_with("latency")) {
      machine = raised(machine, parameter.name, share);
    }
  }
  return rate_on(machine);
}

/// Finds the lowest link rate, to within 5%, that hides communication with the answer's own layout. Assumes that a
/// higher rate never hides less.
void WhatIfs::find_hiding_rate(RateCurve& curve, bool network) {
  constexpr double step = 0.05;
  const int limit = static_cast<int>(std::lround(math::log(highest_rate) / step));
  const double target = rate_with(rates_of(network, 64.0)) / hidden;
  const auto hides = [&](int steps) { return rate_with(rates_of(network, math::exp(step * steps))) >= target; };
  if (!hides(limit)) {
    return;
  }
  int sufficient = limit;
  for (int insufficient = -limit; sufficient - insufficient > 1;) {
    const int middle = (sufficient + insufficient) / 2;
    (hides(middle) ? sufficient : insufficient) = middle;
  }
  const Machine& machine = planner_.search().machine();
  const Link& link = network ? *machine.network : machine.link;
  curve.to_hide = math::exp(step * sufficient);
  curve.to_hide_gb_s = *curve.to_hide * link.nominal_rate.value.value / 1e9;
}

std::vector<WhatIf> WhatIfs::all_changes() {
  std::vector<WhatIf> changes;
  curves_.clear();
  add_schedules(changes);
  add_slow_node(changes);
  add_rates(changes, false);
  if (planner_.search().machine().network) {
    add_rates(changes, true);
  }
  add_prices(changes);
  return changes;
}

std::vector<Sensitivity> WhatIfs::sensitivities() {
  std::vector<Sensitivity> sensitivities;
  const auto add = [&](std::string input, const RunTerms& low, const RunTerms& high) {
    const RunTotals lower = totals_of(low);
    const RunTotals higher = totals_of(high);
    sensitivities.push_back({std::move(input), lower.days, higher.days, lower.cost, higher.cost});
  };
  const double rate = answer_.tokens_per_second.value;
  const auto with = [&](double RunTerms::*input, double share) {
    RunTerms other = terms(rate);
    other.*input *= 1.0 + share;
    return other;
  };
  const auto with_checkpoint = [&](double share) {
    RunTerms other = terms(rate);
    other.checkpoint *= 1.0 + share;
    return other;
  };
  add("speed of kernels", terms(rate_slowed(1.0 / (1.0 - change_))), terms(rate_slowed(1.0 / (1.0 + change_))));
  add("rate of links", terms(rate_with({.node = 1.0 - change_})), terms(rate_with({.node = 1.0 + change_})));
  if (planner_.search().machine().network) {
    add("rate of network", terms(rate_with({.network = 1.0 - change_})), terms(rate_with({.network = 1.0 + change_})));
  }
  add("latency of all links", terms(rate_with_latencies(-change_)), terms(rate_with_latencies(change_)));
  if (planner_.search().terms().rank_sigma > 0.0) {
    const Machine& machine = planner_.search().machine();
    add("spread of the GPUs", terms(rate_on(machine, 1.0 - change_)), terms(rate_on(machine, 1.0 + change_)));
  }
  add("price of a GPU", with(&RunTerms::price, -change_), with(&RunTerms::price, change_));
  add("failures", with(&RunTerms::per_gpu_hour, -change_), with(&RunTerms::per_gpu_hour, change_));
  add("time of a checkpoint", with_checkpoint(-change_), with_checkpoint(change_));
  if (planner_.file().energy_price > 0.0) {
    add("price of energy", with(&RunTerms::energy_price, -change_), with(&RunTerms::energy_price, change_));
  }
  return sensitivities;
}

}  // namespace commfuse
