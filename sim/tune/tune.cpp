// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"
#include "model/hardware/link_rates.h"
#include "model/hardware/raised.h"
#include "model/math/functions.h"
#include "sim/step/step_uncertainty.h"
#include "sim/tune/sampled_sites.h"

namespace commfuse {

namespace {

/// SiteTimes of the machine with faster links, created once per rate.
class FasterLinks {
 public:
  FasterLinks(const Machine& machine, StructureCache& structures) : machine_(machine), structures_(structures) {}

  /// Returns the smallest factor on the link rate that hides the communication, accurate to 5%. Assumes that a higher
  /// rate never hides less.
  std::optional<double> smallest_factor(const SitePoint& site) {
    if (!hides(site, step_limit)) {
      return std::nullopt;
    }
    int enough = step_limit;
    for (int too_few = -step_limit; enough - too_few > 1;) {
      const int middle = (enough + too_few) / 2;
      (hides(site, middle) ? enough : too_few) = middle;
    }
    return rate_of(enough);
  }

 private:
  static constexpr double step = 0.05;
  static constexpr int step_limit = 56;  // steps to 16 times the rate

  /// Rates are on a grid, so that sites share machines.
  static double rate_of(int steps) { return math::exp(step * steps); }

  /// Returns whether the strategy hides its communication at a site.
  bool hides(const SitePoint& site, int steps) {
    constexpr double close = 1.01;
    const SiteTime time = at(steps).of(site);
    return to_seconds(time.time) <= close * to_seconds(time.ideal);
  }

  SiteTimes& at(int steps) {
    std::unique_ptr<SiteTimes>& known = by_steps_[steps];
    if (!known) {
      known = std::make_unique<SiteTimes>(structures_, with_link_rates(machine_, {rate_of(steps), rate_of(steps)}));
    }
    return *known;
  }

  const Machine& machine_;
  StructureCache& structures_;
  std::map<int, std::unique_ptr<SiteTimes>> by_steps_;
};

void require_some(const PlanSpace& space, std::size_t plans) {
  if (plans == 0) {
    require_possible(*space.model, space.wish);
    throw ConfigError(
        fmt::format("no layout of {} fits {} GPUs of {} with batch {}; remove a setting that fixes a degree, or choose "
                    "a batch with more divisors",
                    space.model->name, space.gpus, space.machine->name, space.base.global_batch));
  }
}

/// A plan, its objective, and the uncertainty of the objective.
struct RankedPlan {
  TunedPlan tuned;
  Duration time{};
  Uncertainty uncertainty{};
};

std::vector<RankedPlan> ranked_plans(StepPoint point, SiteTimes& times, const std::vector<TunedPlan>& plans,
                                     Minimize minimize) {
  std::vector<RankedPlan> ranked;
  for (const TunedPlan& plan : plans) {
    point.plan = plan.plan;
    ranked.push_back({plan, minimize == Minimize::p99 ? step_percentiles(point, times).p99 : plan.step.time});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  return ranked;
}

void add_errors(StepPoint point, SiteTimes& times, StructureCache& structures, std::vector<RankedPlan>& ranked) {
  constexpr StepTime step{&step_time};
  const RaisedSteps raised(*point.machine, structures);
  for (RankedPlan& plan : ranked) {
    point.plan = plan.tuned.plan;
    plan.uncertainty = step_uncertainty(point, times, step, raised.steps());
    plan.tuned.error = error_of(plan.uncertainty);
  }
}

/// Corrects the times by the evidence and sorts the plans again, fastest first. Requires add_errors().
void correct_by(const StepEvidence& evidence, std::vector<RankedPlan>& ranked) {
  for (RankedPlan& plan : ranked) {
    plan.tuned.correction = limited_to_peak({evidence.correction(plan.uncertainty), plan.tuned.step.mfu});
    plan.tuned.step = corrected(plan.tuned.step, plan.tuned.correction);
    plan.time = from_seconds(to_seconds(plan.time) * plan.tuned.correction);
    plan.uncertainty = given(plan.uncertainty, evidence.evidence);
    plan.tuned.error = error_of(plan.uncertainty);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
}

/// Corrects steps by a measured step, each by its own uncertainty, as rows of `run` are.
class StepCorrection {
 public:
  /// Without evidence, steps stay unchanged. The arguments must outlive the object.
  StepCorrection(const std::optional<StepEvidence>& evidence, const Machine& machine, StructureCache& structures,
                 SiteTimes& times)
      : evidence_(evidence), times_(times) {
    if (evidence) {
      raised_.emplace(machine, structures);
    }
  }

  [[nodiscard]] bool is_measured() const { return evidence_.has_value(); }

  /// Returns the corrected step of the point.
  [[nodiscard]] StepPrediction operator()(const StepPoint& point, const StepPrediction& step) const {
    constexpr StepTime time{&step_time};
    return evidence_ ? corrected(step, evidence_->correction(step_uncertainty(point, times_, time, raised_->steps())))
                     : step;
  }

 private:
  const std::optional<StepEvidence>& evidence_;
  SiteTimes& times_;
  std::optional<RaisedSteps> raised_;
};

/// Corrects the lower bound and the samples of the first plan by its own factor, so that they stay comparable with it.
void correct_bound_and_samples(Tuning& tuning) {
  tuning.correction = tuning.best.front().correction;
  const double factor = *tuning.correction;
  tuning.bound = corrected(tuning.bound, factor);
  if (tuning.tails) {
    tuning.best.front().step = corrected(tuning.best.front().step, factor);
    for (StepTail* tail : {&tuning.tails->first, &tuning.tails->second}) {
      for (Duration* time : {&tail->mean, &tail->p50, &tail->p95, &tail->p99}) {
        *time = from_seconds(to_seconds(*time) * factor);
      }
    }
  }
}

/// Compares each plan with the fastest other plan. Requires add_errors(), and plans in the order of their times.
void add_probabilities(std::vector<RankedPlan>& ranked) {
  for (std::size_t i = 0; i < ranked.size() && ranked.size() > 1; ++i) {
    RankedPlan& plan = ranked[i];
    const RankedPlan& rival = ranked[i == 0 ? 1 : 0];
    plan.tuned.win_probability = probability_shorter(plan.time, plan.uncertainty, rival.time, rival.uncertainty);
  }
}

/// Puts one plan first in tuning.best: the fastest or, among plans that tie with it, the plan that the tie rule
/// prefers.
void take_best(const std::vector<RankedPlan>& ranked, const VerdictRule& rule, Tuning& tuning) {
  std::vector<PlanContender> plans;
  for (const RankedPlan& plan : ranked) {
    Contender objective{to_seconds(plan.time), plan.tuned.error};
    if (&plan != &ranked.front()) {
      objective.win_probability = plan.tuned.win_probability;
    }
    plans.push_back({.objective = objective, .plan = tied_plan(plan.tuned)});
  }
  PlanChoice choice = choose_plan(plans, rule);
  const double fastest = to_seconds(ranked.front().time);
  Duration slowest{};
  for (const std::size_t index : choice.verdict.front) {
    slowest = std::max(slowest, ranked[index].time);
  }
  tuning.best.clear();
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    tuning.best.push_back(ranked[i].tuned);
    tuning.best.back().ties = std::ranges::find(choice.verdict.front, i) != choice.verdict.front.end();
  }
  const auto first = tuning.best.begin();
  const auto chosen = static_cast<std::ptrdiff_t>(choice.chosen);
  std::rotate(first, first + chosen, first + chosen + 1);
  tuning.ties = choice.verdict.front.size();
  tuning.ties_within = to_seconds(slowest) / fastest - 1.0;
  tuning.excess_over_fastest = to_seconds(ranked[choice.chosen].time) / fastest - 1.0;
  tuning.tie_rule = std::move(choice.reason);
}

/// Finds the strategy that is best when all sites use the same one. Serial splits nothing and is always possible.
void choose_single(StepPoint point, SiteTimes& times, Tuning& tuning) {
  for (const Strategy* strategy : strategies_for_steps()) {
    point.strategies = {strategy};
    try {
      const StepPrediction step = predict_step(point, times);
      if (tuning.single == nullptr || step.time < tuning.with_single.time) {
        tuning.single = strategy;
        tuning.with_single = step;
      }
    } catch (const ConfigError& error) {
      tuning.without_schedule.push_back({strategy, error.what()});
    }
  }
}

/// Returns the plan that is fastest with the point's strategies after correction; nothing if every plan has a site for
/// which they have no schedule. With a measured step, considers the plans with the shortest predictions and the point's
/// own plan.
std::optional<TunedPlan> fastest_with_these(StepPoint point, SiteTimes& times, std::vector<TrainingPlan> plans,
                                            const StepCorrection& correction) {
  const TrainingPlan first = point.plan;
  const bool has_first = has_schedules(point, times);
  std::erase_if(plans, [&](const TrainingPlan& plan) {
    point.plan = plan;
    return !has_schedules(point, times);
  });
  std::vector<TunedPlan> fastest =
      fastest_plans(point, plans, times, correction.is_measured() ? compared_plans : 1).best;
  if (correction.is_measured() && has_first) {
    point.plan = first;
    fastest.push_back({.plan = first, .step = predict_step(point, times)});
  }
  for (TunedPlan& plan : fastest) {
    point.plan = plan.plan;
    plan.step = correction(point, plan.step);
  }
  const auto shortest = std::ranges::min_element(fastest, {}, [](const TunedPlan& plan) { return plan.step.time; });
  return shortest == fastest.end() ? std::nullopt : std::optional(*shortest);
}

/// Adds the steps of the first plan, which is the point's, with other schedules, and the fastest plan as the framework
/// runs it or, without a framework, with serial.
void add_baselines(StepPoint point, SiteTimes& times, const std::vector<TrainingPlan>& plans,
                   const StepCorrection& correction, Tuning& tuning) {
  choose_single(point, times, tuning);
  point.strategies = {tuning.single};
  tuning.with_single = correction(point, tuning.with_single);
  point.strategies = {&serial_strategy};
  tuning.serial = correction(point, predict_step(point, times));
  if (!point.framework.name.empty()) {
    point.strategies = strategies_by_default(point.framework);
    if (has_schedules(point, times)) {
      tuning.baseline = correction(point, predict_step(point, times));
    }
  }
  tuning.fastest_baseline = fastest_with_these(point, times, plans, correction);
}

/// Returns the step of the point's plan with the other exchange of keys and values; nothing without context ranks,
/// where the exchange is impossible or needs more than `most_bytes` of memory, or where it changes nothing, because
/// layers with a window gather either way.
std::optional<StepPrediction> with_other_exchange(StepPoint point, SiteTimes& times, double most_bytes,
                                                  const StepCorrection& correction) {
  if (point.plan.context == 1) {
    return std::nullopt;
  }
  const Duration usual = step_time(point, times);
  point.plan.context_exchange = other_exchange_of(point.plan);
  try {
    require_possible(point);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  const StepPrediction step = predict_step(point, times);
  const bool fits = static_cast<double>(step.memory.total().count) <= most_bytes;
  return fits && step.time != usual ? std::optional(correction(point, step)) : std::nullopt;
}

}  // namespace

bool frees_collectives(const TrainingPlan& plan) { return plan.tensor > 1 && plan.sequence_parallel; }

ContextExchange other_exchange_of(const TrainingPlan& plan) {
  return plan.context_exchange == ContextExchange::ring ? ContextExchange::all_gather : ContextExchange::ring;
}

CalculonForms calculon_forms(const CalculonSite& site) {
  constexpr double usage = 0.15;
  const double c = to_seconds(site.compute);
  const double t = to_seconds(site.communication);
  const auto n = static_cast<double>(site.ranks);
  const double slowed = c / (1.0 - usage);
  const double ring = t > slowed ? c / n + (n - 1.0) / n * t : c + (n - 1.0) / n * usage * t;
  return {.none = site.compute + site.communication, .pipe = from_seconds(ring + t / n), .ring = from_seconds(ring)};
}

std::vector<TunedSite> tune_sites(const StepPoint& point, SiteTimes& times, StructureCache& structures) {
  check(point.plan.sequence_parallel, "sites have collectives where tensor ranks share the tokens");
  FasterLinks faster_links(*point.machine, structures);
  const std::vector<const Strategy*> strategies = strategies_for_steps();
  std::vector<TunedSite> sites;
  for (const LayerSite& layer_site : layer_sites(*point.model, point.plan)) {
    SitePoint site = site_point(point.plan, layer_site.shape, layer_site.scope);
    site.strategy = &serial_strategy;
    TunedSite tuned{
        .name = layer_site.name, .scope = layer_site.scope, .shape = layer_site.shape, .serial = times.of(site)};
    tuned.best = times.fastest(site, strategies);
    tuned.calculon = calculon_forms({.compute = tuned.serial.compute,
                                     .communication = tuned.serial.time - tuned.serial.compute,
                                     .ranks = point.plan.tensor});
    site.strategy = tuned.best.strategy;
    tuned.rate_to_hide = faster_links.smallest_factor(site);
    sites.push_back(tuned);
  }
  return sites;
}

Tuning tune(const PlanSpace& space, const TuneOptions& options) {
  StructureCache structures;
  SiteTimes times(structures, *space.machine);
  StepPoint point{.model = space.model, .machine = space.machine, .plan = space.base, .framework = space.framework};
  point.rank_sigma = options.rank_sigma;
  point.communication_sigma = options.communication_sigma;
  Tuning tuning;
  std::vector<TrainingPlan> plans = plans_of(space);
  require_some(space, plans.size());
  point.plan = plans.front();
  require_possible(point);
  tuning.plans = plans.size();
  const double limit = options.memory_share * static_cast<double>(space.machine->accelerator.hbm_capacity.count);
  const MemoryRules rules = memory_rules_of(space.framework, *space.machine);
  tuning.memory_limit = limit;
  tuning.least_memory = largest_step_memory(*space.model, plans.front(), rules).total();
  std::erase_if(plans, [&](const TrainingPlan& plan) {
    const Bytes memory = largest_step_memory(*space.model, plan, rules).total();
    tuning.least_memory = std::min(tuning.least_memory, memory);
    return static_cast<double>(memory.count) > limit;
  });
  tuning.fitting = plans.size();
  if (plans.empty()) {
    return tuning;
  }
  point.strategies = strategies_for_steps();
  tuning.best = fastest_plans(point, plans, times, std::max(compared_plans, options.keep)).best;
  std::vector<RankedPlan> ranked = ranked_plans(point, times, tuning.best, options.minimize);
  if (options.errors) {
    add_errors(point, times, structures, ranked);
    if (options.evidence) {
      correct_by(*options.evidence, ranked);
    }
    add_probabilities(ranked);
  }
  take_best(ranked, options.rule, tuning);
  tuning.best.resize(std::min(tuning.best.size(), options.keep));
  point.plan = tuning.best.front().plan;
  const StepCorrection correction(options.evidence, *space.machine, structures, times);
  add_baselines(point, times, plans, correction, tuning);
  SiteTimes compute_only(structures, *space.machine, SiteTimes::Counts::compute);
  tuning.bound = predict_step(point, compute_only);
  if (point.plan.sequence_parallel) {
    tuning.sites = tune_sites(point, times, structures);
    tuning.overlap = overlap_choices(space, point.plan);
    if (options.monte_carlo.jitter != nullptr) {
      tuning.tails = choose_by_samples(point, times, options, tuning.sites);
      tuning.best.front().step = predict_step(point, times);  // with the chosen schedules
    }
  }
  if (options.other_exchange) {
    tuning.other_exchange = with_other_exchange(point, times, limit, correction);
  }
  if (options.evidence) {
    correct_bound_and_samples(tuning);
  }
  return tuning;
}

}  // namespace commfuse
