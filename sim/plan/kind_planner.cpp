// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/kind_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/config/bandwidth_choice.h"
#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/record/result.h"
#include "sim/plan/kind_inputs.h"
#include "sim/plan/step_error.h"

namespace commfuse {

namespace {

constexpr std::size_t max_doubts = 6;
constexpr std::string_view batch_remedy = "a batch that more degrees divide";

std::int64_t max_gpus(const PlanFile& file, const GpuOffer& offer) {
  const std::int64_t wanted = offer.count.value_or(offer.available);
  if (!file.power || !offer.power) {
    return wanted;
  }
  const double powered = file.power->value / (offer.power->value * file.pue);
  return static_cast<std::int64_t>(std::min(static_cast<double>(wanted), powered));
}

/// Returns the machine, resized to hold `gpus` GPUs.
Machine machine_for(const GpuOffer& offer, std::int64_t gpus) {
  const Machine machine = machine_of(offer.machine);
  if (!machine.network && offer.available > machine.gpus_per_node) {
    const bool is_count = offer.count == offer.available;
    throw ConfigError(
        fmt::format("{}'gpus.{}.{}' is {}, but {} is one node of {}; choose a cluster as 'hardware', such as "
                    "dgx-h100-x2, or fewer GPUs",
                    is_count ? offer.count_place + ": " : "", offer.name, is_count ? "count" : "available",
                    offer.available, machine.name, machine.gpus_per_node));
  }
  TrainingPlan plan;
  plan.data = gpus;
  return resized(machine, plan);
}

double seconds(Duration time) { return to_seconds(time); }

/// Returns the value with the interval from `low` to `high` times the value.
Interval scaled(double value, double low, double high) { return {value, value * low, value * high}; }

void put_step(CapacityRun& run, const FoundLayout& layout, const RunSpread& spread) {
  const StepPrediction& step = layout.step;
  run.step_s = scaled(seconds(step.time), spread.step_low, spread.step_high);
  run.step_equal_gpus_s = seconds(layout.tail.equal_gpus);
  run.step_p50_s = seconds(layout.tail.p50);
  run.step_p95_s = seconds(layout.tail.p95);
  run.step_p99_s = seconds(layout.tail.p99);
  run.step_p99_9_s = seconds(layout.tail.p99_9);
  run.compute_s = seconds(step.parts.compute);
  run.waiting_s = seconds(step.parts.waiting);
  run.gradients_s = seconds(step.parts.gradients);
  run.optimizer_s = seconds(step.parts.optimizer);
  run.tokens_per_second = spread.tokens_per_second;
  run.mfu = scaled(step.mfu, 1.0 / spread.step_high, 1.0 / spread.step_low);
  run.hfu = step.hfu;
  run.memory_gb = static_cast<double>(step.memory.total().count) / 1e9;
}

void put_totals(CapacityRun& run, const RunTerms& terms, const RunSpread& spread) {
  const RunTotals totals = totals_of(terms);
  run.goodput = spread.goodput;
  run.checkpoint_every_s = totals.checkpoint_every.count();
  run.failures = totals.failures;
  run.days = spread.days;
  run.gpu_hours = spread.gpu_hours;
  run.cost = spread.cost;
  run.cost_per_mtok = spread.cost_per_mtok;
  if (terms.power.value > 0.0) {
    const Interval& kwh = spread.energy_kwh;
    run.energy_mwh = Interval{kwh.value / 1e3, kwh.low / 1e3, kwh.high / 1e3};
    run.power_mw = terms.gpus * terms.power.value * terms.pue / 1e6;
  }
}

/// Returns the days until the deadline; infinity without one.
double deadline_days(const PlanFile& file) {
  return file.deadline ? file.deadline->count() / 86400.0 : std::numeric_limits<double>::infinity();
}

/// Returns the probability that a run meets both deadline and budget.
double confidence_of(const PlanFile& file, const RunSpread& spread) {
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  return share_within(spread, {.days = deadline_days(file), .cost = file.budget.value_or(no_limit)});
}

/// Returns the names of the limits that a run does not meet with the confidence of the plan file. If it meets each of
/// deadline and budget with this confidence, but not both, the one that it meets less often is named.
std::string misses_of(const PlanFile& file, const CapacityRun& run, const RunSpread& spread) {
  const bool is_median = file.confidence == 0.5;
  const double days = deadline_days(file);
  const double in_time = file.deadline ? share_within(spread, {.days = days}) : 1.0;
  const double affordable = file.budget ? share_within(spread, {.cost = *file.budget}) : 1.0;
  std::vector<std::string_view> names;
  if (file.deadline && (is_median ? run.days.value > days : in_time < file.confidence)) {
    names.emplace_back("deadline");
  }
  if (file.budget && (is_median ? run.cost.value > *file.budget : affordable < file.confidence)) {
    names.emplace_back("budget");
  }
  if (names.empty() && !is_median && confidence_of(file, spread) < file.confidence) {
    names.emplace_back(in_time < affordable ? "deadline" : "budget");
  }
  if (file.p99_step && run.step_p99_s > file.p99_step->count()) {
    names.emplace_back("p99_step");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

RunTerms terms_of(const PlanFile& file, const GpuOffer& offer, std::int64_t gpus, double tokens_per_second) {
  return {.tokens = file.tokens,
          .tokens_per_second = tokens_per_second,
          .gpus = static_cast<double>(gpus),
          .price = offer.price,
          .per_gpu_hour = file.failures.per_gpu_hour,
          .checkpoint = file.failures.checkpoint,
          .restart = file.failures.restart,
          .power = offer.power.value_or(Watts{}),
          .pue = file.pue,
          .energy_price = file.energy_price};
}

KindPlanner::KindPlanner(const PlanFile& file, const GpuOffer& offer, const Transformer& model,
                         const LayoutTerms& terms, StructureCache& structures)
    : file_(file),
      offer_(offer),
      structures_(structures),
      model_error_(model_error_of(file, model, terms).value),
      max_gpus_(max_gpus(file, offer)),
      machine_(machine_for(offer, offer.available)),
      search_(model, machine_, structures, terms),
      counts_(planned_counts()) {}

/// Returns the counts that layouts divide evenly, or only the count that the offer states. Throws ConfigError if no
/// count can have the fixed degrees, and for a stated count that no layout divides.
std::vector<std::int64_t> KindPlanner::planned_counts() const {
  require_possible(search_.model(), search_.terms().wish);
  if (!offer_.count) {
    return search_.counts(max_gpus_);
  }
  const std::int64_t wanted = *offer_.count;
  if (const std::vector<std::int64_t> counts = search_.counts(wanted); !counts.empty() && counts.back() == wanted) {
    return max_gpus_ < wanted ? std::vector<std::int64_t>{} : std::vector{wanted};
  }
  if (!search_.fills_nodes(wanted)) {
    throw ConfigError(fmt::format(
        "{}: 'gpus.{}.count' is {}, but a plan uses whole nodes of {} GPUs, or a number that divides one evenly; {}",
        offer_.count_place, offer_.name, wanted, machine_.gpus_per_node,
        advice_for(wanted, fmt::format("see a step on {} with commfuse-sim tune", wanted))));
  }
  const LayoutTerms& terms = search_.terms();
  throw ConfigError(
      fmt::format("{}: 'gpus.{}.count' is {}, but no layout of {} with batch {} divides {} GPUs of {} evenly; {}",
                  offer_.count_place, offer_.name, wanted, search_.model().name, terms.base.global_batch, wanted,
                  machine_.name, advice_for(wanted, batch_remedy)));
}

/// Returns "choose 64 or 128, or a batch that more degrees divide" with the nearest counts for which some layout has
/// the fixed degrees and fits in memory, and the remedy.
std::string KindPlanner::advice_for(std::int64_t count, std::string_view remedy) const {
  constexpr std::int64_t farthest = 8;
  constexpr std::int64_t enough = 8192;
  const Machine node = machine_of(offer_.machine);
  const std::int64_t limit = node.network ? std::max(enough, farthest * count) : node.gpus_per_node;
  const Machine machine = machine_for(offer_, limit);
  LayoutSearch search(search_.model(), machine, structures_, search_.terms());
  const std::vector<std::int64_t> counts = search.counts(limit);
  const auto next = std::lower_bound(counts.begin(), counts.end(), count);
  const auto fits = [&](std::int64_t gpus) { return search.has_fitting(gpus); };
  std::vector<std::string> nearest;
  if (const auto below = std::find_if(std::make_reverse_iterator(next), counts.rend(), fits); below != counts.rend()) {
    nearest.push_back(fmt::format("{}", *below));
  }
  if (const auto above = std::find_if(next, counts.end(), fits); above != counts.end()) {
    nearest.push_back(fmt::format("{}", *above));
  }
  return nearest.empty()
             ? fmt::format(
                   "no layout on up to {} GPUs has the fixed degrees and fits in memory, so free degrees, or "
                   "choose a batch that more degrees divide",
                   limit)
             : fmt::format("choose {}, or {}", fmt::join(nearest, " or "), remedy);
}

/// Returns advice for an exact count within the power limit for which no layout fits.
std::string KindPlanner::count_advice(const CapacityKind& kind) const {
  const SearchTally& tally = search_.tally();
  const bool is_about_size = !tally.too_slow && tally.refusal.empty();
  if (!kind.count || !kind.runs.empty() || max_gpus_ < *kind.count || !is_about_size) {
    return {};
  }
  return advice_for(*kind.count, tally.layouts == 0 ? batch_remedy : "free degrees that are fixed");
}

void KindPlanner::find_layouts() {
  for (const std::int64_t gpus : counts_) {
    if (const std::optional<FoundLayout> layout = search_.preferred(gpus)) {
      layouts_.push_back(*layout);
    }
  }
}

RunDraws KindPlanner::draws(double step_error) const {
  return {{.step = step_error, .price = offer_.price_error, .failures = file_.failures.error},
          {.seed = choices_of(file_.settings).seed, .draws = interval_draws}};
}

void KindPlanner::add_runs(CapacityKind& kind, double step_error) const {
  const RunDraws errors = draws(step_error);
  kind.step_error = step_error;
  kind.runs.clear();
  for (const FoundLayout& layout : layouts_) {
    CapacityRun run{.kind = offer_.name, .gpus = layout.plan.gpus(), .layout = layout.plan};
    run.excess_over_fastest = layout.excess_over_fastest;
    run.layout_rule = layout.reason;
    run.nodes = (run.gpus + machine_.gpus_per_node - 1) / machine_.gpus_per_node;
    const RunTerms terms = terms_of(file_, offer_, run.gpus, layout.step.tokens_per_second);
    const RunSpread spread = errors.spread_of(terms);
    put_step(run, layout, spread);
    put_totals(run, terms, spread);
    run.misses = misses_of(file_, run, spread);
    run.confidence = confidence_of(file_, spread);
    kind.runs.push_back(std::move(run));
  }
  const std::optional<RunChoice> choice = choose_run(file_, std::span(&kind, 1));
  kind.answer = choice ? std::optional(choice->chosen.run) : std::nullopt;
}

void KindPlanner::add_sites(CapacityKind& kind, const FoundLayout& layout) {
  sites_.clear();
  kind.sites.clear();
  if (!layout.plan.sequence_parallel) {
    return;
  }
  const StepPoint point = search_.point_of(layout.plan);
  sites_ = tune_sites(point, search_.times(), structures_);
  for (const TunedSite& site : sites_) {
    const std::string parameters = parameters_of(*site.best.strategy, kinds_of(site.scope), site.best.options);
    const std::string strategy(site.best.strategy->name);
    kind.sites.push_back({.name = site.name,
                          .strategy = strategy,
                          .schedule = parameters.empty() ? strategy : fmt::format("{} ({})", strategy, parameters),
                          .serial_us = to_microseconds(site.serial.time),
                          .best_us = to_microseconds(site.best.time),
                          .compute_us = to_microseconds(site.serial.compute),
                          .rate_to_hide = site.rate_to_hide});
  }
  Duration least = Duration::max();
  for (const Strategy* strategy : strategies_for_steps()) {
    StepPoint with_single = point;
    with_single.strategies = {strategy};
    if (!has_schedules(with_single, search_.times())) {
      continue;
    }
    if (const Duration time = search_.at(layout.plan, {strategy}).step.time; time < least) {
      least = time;
      kind.single = strategy->name;
    }
  }
}

void KindPlanner::take(CapacityKind& kind, std::size_t run) {
  if (kind.answer != run) {
    kind.answer = run;
    add_sites(kind, layouts_[run]);
  }
}

CapacityKind KindPlanner::offered() const {
  CapacityKind kind{.name = offer_.name,
                    .hardware = offer_.machine.text("hardware"),
                    .machine = machine_in_words(machine_.name, offer_.machine.text("link_bandwidth"),
                                                offer_.machine.text("network_bandwidth")),
                    .price = offer_.price,
                    .price_date = offer_.price_date,
                    .price_source = offer_.price_source,
                    .available = offer_.available,
                    .count = offer_.count};
  kind.power_w = offer_.power.value_or(Watts{}).value;
  kind.memory_limit_gb = file_.memory_share * static_cast<double>(machine_.accelerator.hbm_capacity.count) / 1e9;
  kind.link_gb_s = machine_.link.nominal_rate.value.value / 1e9;
  if (machine_.network) {
    kind.network_gb_s = machine_.network->nominal_rate.value.value / 1e9;
  }
  kind.inputs = inputs_of(machine_, search_.terms().base.dtype);
  return kind;
}

bool KindPlanner::covers(const StepEvidence& evidence) const {
  return offer_.machine.text("hardware") == evidence.hardware;
}

double KindPlanner::correction_at(std::int64_t gpus) const {
  const auto known = corrections_.find(gpus);
  return known == corrections_.end() ? 1.0 : known->second;
}

/// Computes the errors of the answer or, without an answer, of the largest count of GPUs. All runs get these errors,
/// because the effects of parameters hardly change with the count.
void KindPlanner::add_errors(CapacityKind& kind) {
  const std::size_t reference = kind.answer.value_or(layouts_.size() - 1);
  add_sites(kind, layouts_[reference]);
  std::vector<CapacityDoubt> doubts = step_doubts(search_, layouts_[reference], sites_, structures_);
  add_runs(kind, step_error(doubts, model_error_));
  kind.doubts = std::move(doubts);
  if (kind.answer && *kind.answer != reference) {
    add_sites(kind, layouts_[*kind.answer]);
  }
}

void KindPlanner::correct(CapacityKind& kind, const StepEvidence& evidence) {
  const RaisedSteps raised(machine_, structures_);
  std::vector<Uncertainty> remaining;
  for (FoundLayout& layout : layouts_) {
    LayoutCorrection correction = correct_layout(search_, layout, raised, evidence);
    corrections_[layout.plan.gpus()] = correction.factor;
    remaining.push_back(std::move(correction.remaining));
  }
  add_runs(kind, error_of(remaining.back()));
  const Uncertainty& reference = remaining[kind.answer.value_or(remaining.size() - 1)];
  model_error_ = model_error_of(reference);
  add_runs(kind, error_of(reference));
  kind.doubts = doubts_of(reference, machine_);
  add_sites(kind, layouts_[kind.answer.value_or(remaining.size() - 1)]);
}

/// Returns the smallest count above the planned counts whose run meets the deadline; nothing if a planned run meets it,
/// or if no count up to 8 times the limit does. A measured step corrects the times of these runs as it corrects that of
/// the largest planned run.
std::optional<std::int64_t> KindPlanner::gpus_for_deadline(const CapacityKind& kind) const {
  const double allowed = deadline_days(file_);
  const auto is_in_time = [&](const CapacityRun& run) { return run.days.value <= allowed; };
  if (!file_.deadline || !machine_.network || kind.runs.empty() || std::ranges::any_of(kind.runs, is_in_time)) {
    return std::nullopt;
  }
  constexpr std::int64_t farthest = 8;
  const std::int64_t limit = farthest * max_gpus_;
  const CapacityRun& largest = kind.runs.back();
  const double correction = corrections_.empty() ? 1.0 : corrections_.rbegin()->second;
  // A run without failures whose predicted MFU is 1 would need this many GPUs.
  const double least = static_cast<double>(largest.gpus) * largest.mfu.value * correction * file_.tokens /
                       (largest.tokens_per_second.value * file_.deadline->count());
  if (least > static_cast<double>(limit)) {
    return std::nullopt;
  }
  const Machine machine = machine_for(offer_, limit);
  LayoutSearch search(search_.model(), machine, structures_, search_.terms());
  for (const std::int64_t gpus : search.counts(limit)) {
    if (gpus <= max_gpus_ || static_cast<double>(gpus) < least) {
      continue;
    }
    const std::optional<FoundLayout> layout = search.preferred(gpus);
    if (!layout) {
      continue;
    }
    const double tokens_per_second = corrected(layout->step, correction).tokens_per_second;
    if (totals_of(terms_of(file_, offer_, gpus, tokens_per_second)).days <= allowed) {
      return gpus;
    }
  }
  return std::nullopt;
}

/// Returns the count at which the run is shortest, among those reached by halving the exact count; nothing if all take
/// longer than the exact count. Halving ends where no layout is found or where the run takes far longer. A measured
/// step corrects the times of smaller counts as it corrects that of the exact count.
std::optional<SmallerCount> KindPlanner::smaller_count(const CapacityRun& exact) {
  constexpr double hardly = 1.5;  // on few GPUs, halving their number almost doubles the time
  std::optional<SmallerCount> best;
  for (std::int64_t gpus = exact.gpus / 2; gpus > 0; gpus /= 2) {
    const std::vector<std::int64_t> counts = search_.counts(gpus);
    const bool is_possible = !counts.empty() && counts.back() == gpus;
    const std::optional<FoundLayout> layout = is_possible ? search_.preferred(gpus) : std::nullopt;
    if (!layout) {
      break;
    }
    const double tokens_per_second = corrected(layout->step, correction_at(exact.gpus)).tokens_per_second;
    const RunTotals totals = totals_of(terms_of(file_, offer_, gpus, tokens_per_second));
    if (totals.days > hardly * exact.days.value) {
      break;
    }
    if (totals.days <= (best ? best->days : exact.days.value)) {
      best = SmallerCount{.gpus = gpus, .days = totals.days, .cost = totals.cost};
    }
  }
  return best;
}

CapacityKind KindPlanner::plan(const StepEvidence* evidence) {
  CapacityKind kind = offered();
  try {
    find_layouts();
  } catch (const ConfigError& error) {  // other kinds may support the run
    kind.reason = error.what();
    return kind;
  }
  add_runs(kind, model_error_);
  if (!layouts_.empty()) {
    if (evidence != nullptr) {
      correct(kind, *evidence);
    } else {
      add_errors(kind);
    }
    kind.doubts.resize(std::min(kind.doubts.size(), max_doubts));
  }
  const SearchTally& tally = search_.tally();
  kind.layouts = tally.layouts;
  kind.fitting = tally.fitting;
  kind.priced = tally.priced;
  if (kind.count && !kind.runs.empty()) {
    kind.smaller = smaller_count(kind.runs.front());
  }
  if (!kind.answer) {
    kind.sites.clear();
    kind.single.clear();
    kind.reason = binding_limit(file_, kind, search_, max_gpus_, count_advice(kind));
    kind.gpus_for_deadline = gpus_for_deadline(kind);
  }
  return kind;
}

}  // namespace commfuse
