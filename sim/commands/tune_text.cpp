// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/tune_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/record/model_version.h"
#include "model/text/counted.h"
#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "model/text/shell_word.h"
#include "model/workload/parameters.h"
#include "model/wrapped.h"
#include "reports/commas.h"
#include "reports/comparison.h"
#include "reports/layout_cells.h"
#include "reports/point_rows.h"
#include "reports/trace_label.h"
#include "sim/commands/tune_files.h"

namespace commfuse::sim {

namespace {

using Json = nlohmann::ordered_json;

double milliseconds(Duration time) { return 1e3 * to_seconds(time); }
double gigabytes(Bytes bytes) { return static_cast<double>(bytes.count) / 1e9; }
/// Returns the share of `base` that `time` saves; 0 where it rounds to 0.0%, because equal times differ by rounding and
/// would print as "-0.0%".
double saved(Duration time, Duration base) {
  constexpr double shown = 0.0005;
  const double share = base > Duration{} ? 1.0 - to_seconds(time) / to_seconds(base) : 0.0;
  return std::abs(share) < shown ? 0.0 : share;
}

// --- text ------------------------------------------------------------------------------------------------------------

std::string head(const TuneHeading& heading, const Tuning& tuning) {
  const TrainingPlan& base = heading.space.base;
  std::string text = wrapped(
      fmt::format("{} on {} of {}, batch {} ({} tokens), seq {}, {}", heading.model, counted(heading.space.gpus, "GPU"),
                  machine_in_words(heading.hardware, heading.link_bandwidth, heading.network_bandwidth),
                  format_count(base.global_batch), format_count(base.global_batch * base.seq), format_count(base.seq),
                  name_of(base.dtype)),
      "", "");
  text += parameters_in_words(*heading.space.model) + "\n";
  if (base.schedule == PipelineSchedule::zero_bubble) {
    text += "Pipeline schedule: zero_bubble; backward sites compute only the gradients of inputs (dgrad).\n";
  }
  if (const std::int64_t ranks = heading.space.wish.ulysses.value_or(1); ranks > 1) {
    text += fmt::format("Each sequence is split over {} Ulysses ranks.\n", ranks);
  }
  if (heading.default_batch) {
    text += "No --batch given; using 4M tokens per step.\n";
  }
  if (heading.evidence) {
    text += wrapped(in_words(*heading.evidence), "", "");
  }
  return text + fmt::format("{} layout{} considered; {} fit{} in memory\n",
                            reports::with_commas(static_cast<std::int64_t>(tuning.plans)), tuning.plans == 1 ? "" : "s",
                            reports::with_commas(static_cast<std::int64_t>(tuning.fitting)),
                            tuning.fitting == 1 ? "s" : "");
}

/// Returns a line of the table of plans. The sixth cell appears only for a mixture of experts, with narrower columns.
std::string plan_line(bool has_experts, char mark, const std::array<std::string, 13>& cells) {
  constexpr std::array<int, 13> wide{3, 3, 4, 3, 5, 0, 4, 6, 9, 10, 6, 6, 7};
  constexpr std::array<int, 13> narrow{3, 3, 4, 3, 5, 3, 4, 5, 9, 10, 5, 6, 6};
  std::string line(1, mark);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (const int width = has_experts ? narrow.at(i) : wide.at(i); width > 0) {
      line += fmt::format(" {:>{}}", cells.at(i), width);
    }
  }
  return line + "\n";
}

/// Returns '>' for the recommended plan and '~' for other plans that tie with the fastest.
char mark_of(const TunedPlan& plan, const Tuning& tuning) {
  return &plan == tuning.best.data() ? '>' : plan.ties ? '~' : ' ';
}

/// Returns a sentence about the winner, or about the plans that tie and the reason for the recommended plan.
std::string verdict(const TuneHeading& heading, const Tuning& tuning) {
  const char* unknown = tuning.best.front().error ? "" : "; probability unknown (--uncertainty off)";
  if (tuning.ties < 2) {
    const bool is_only_plan = tuning.fitting < 2;
    return wrapped(fmt::format("The first plan wins{}: no other plan ties with it. A win needs {}.",
                               is_only_plan ? "" : reports::sure_in_words(tuning.best.front().win_probability),
                               reports::rule_in_words(heading.rule)),
                   "", "");
  }
  constexpr double shown = 0.0005;  // rounds to 0.1%
  const std::string slower =
      tuning.excess_over_fastest < shown
          ? std::string{}
          : fmt::format(" The first plan takes {:.1f}% longer than the fastest{}.", 100.0 * tuning.excess_over_fastest,
                        heading.minimize == Minimize::p99 ? " at p99" : "");
  return wrapped(fmt::format("Tie: {} plans (> and ~) are within {:.1f}% of the fastest{}; a win needs {}. The tie is "
                             "broken by {}.{}",
                             tuning.ties, 100.0 * tuning.ties_within, unknown, reports::rule_in_words(heading.rule),
                             tuning.tie_rule, slower),
                 "", "");
}

std::string plans(const TuneHeading& heading, const Tuning& tuning) {
  const bool has_experts = heading.space.model->experts.has_value();
  std::string text = plan_line(
      has_experts, ' ',
      {"TP", "PP", "VPP", "CP", "DP", "EP", "ZeRO", "micro", "recompute", "time/ms", "\u00b1", "MFU", "mem/GB"});
  const auto count = [](std::int64_t number) { return fmt::format("{}", number); };
  for (const TunedPlan& tuned : tuning.best) {
    const TrainingPlan& plan = tuned.plan;
    text += plan_line(
        has_experts, mark_of(tuned, tuning),
        {count(plan.tensor), count(plan.pipeline), count(plan.interleave), count(plan.context), count(plan.data),
         count(plan.expert), count(static_cast<std::int64_t>(plan.zero)), count(plan.micro_batch),
         std::string{name_of(plan.recompute)}, fmt::format("{:.1f}", milliseconds(tuned.step.time)),
         tuned.error ? fmt::format("{:.1f}%", 100.0 * *tuned.error) : "-",
         fmt::format("{:.1f}%", 100.0 * tuned.step.mfu), fmt::format("{:.1f}", gigabytes(tuned.step.memory.total()))});
  }
  return "\n" + text + verdict(heading, tuning);
}

/// Returns, for example, "TP 2, DP 4, ZeRO 3, micro-batch 2", with the degrees that the plan uses.
std::string layout_in_words(const TrainingPlan& plan) {
  std::string text = fmt::format("TP {}", plan.tensor);
  for (const auto& [name, degree] :
       {std::pair{"PP", plan.pipeline}, std::pair{"VPP", plan.interleave}, std::pair{"CP", plan.context},
        std::pair{"Ulysses", plan.ulysses}, std::pair{"DP", plan.data}, std::pair{"EP", plan.expert}}) {
    text += degree > 1 ? fmt::format(", {} {}", name, degree) : "";
  }
  text += fmt::format(", ZeRO {}, micro-batch {}", static_cast<int>(plan.zero), plan.micro_batch);
  return plan.recompute == Recompute::none ? text : text + fmt::format(", recompute {}", name_of(plan.recompute));
}

/// Returns a sentence that compares the first plan with the fastest plan of the baseline (serial, or the framework's
/// own schedules), which may have another layout; empty if there is no such plan.
std::string fastest_baseline(const TuneHeading& heading, const Tuning& tuning) {
  if (!tuning.fastest_baseline) {
    return {};
  }
  const std::string& framework = heading.space.framework.name;
  const std::string schedules = framework.empty() ? "serial collectives" : framework + "'s own schedules";
  const TunedPlan& fastest = *tuning.fastest_baseline;
  if (reports::layout_cells(fastest.plan) == reports::layout_cells(tuning.best.front().plan)) {
    return fmt::format(" No other layout is faster with {}.", schedules);
  }
  const double less = saved(tuning.best.front().step.time, fastest.step.time);
  return fmt::format(" The fastest layout with {} is {}: {:.1f} ms; the first plan takes {:.1f}% {}.", schedules,
                     layout_in_words(fastest.plan), milliseconds(fastest.step.time), 100.0 * std::abs(less),
                     less < 0.0 ? "more" : "less");
}

/// Returns a sentence with the time of the first plan if the collectives of its sites took no time; empty if the sites
/// have no collectives.
std::string lower_bound(const Tuning& tuning) {
  const TunedPlan& best = tuning.best.front();
  if (!frees_collectives(best.plan)) {
    return {};
  }
  return fmt::format(
      " With free collectives of tensor ranks, and all other communication as it is, it would take at least {:.1f} ms "
      "({:.1f}% less).",
      milliseconds(tuning.bound.time), 100.0 * saved(tuning.bound.time, best.step.time));
}

/// Returns a sentence about the exchange of keys that the search did not try; empty if there is none to name.
std::string other_exchange(const Tuning& tuning) {
  if (!tuning.other_exchange) {
    return {};
  }
  const TunedPlan& best = tuning.best.front();
  const double less = saved(tuning.other_exchange->time, best.step.time);
  return wrapped(
      fmt::format("Every plan exchanges the keys of context ranks by {}; with --context-exchange {} the first "
                  "plan would take {:.1f} ms ({:.1f}% {}).",
                  word_of(context_exchange_choices, best.plan.context_exchange),
                  word_of(context_exchange_choices, other_exchange_of(best.plan)),
                  milliseconds(tuning.other_exchange->time), 100.0 * std::abs(less), less < 0.0 ? "more" : "less"),
      "", "");
}

/// Returns whether the first plan takes the same time with every schedule, because it has no sites.
bool has_no_overlap(const Tuning& tuning) {
  const Duration time = tuning.best.front().step.time;
  return tuning.sites.empty() && time == tuning.serial.time && (!tuning.baseline || time == tuning.baseline->time);
}

/// Returns sentences about the time that the schedules of the sites save in the best plan.
std::string gains(const TuneHeading& heading, const Tuning& tuning) {
  const StepPrediction& best = tuning.best.front().step;
  const std::string baseline = tuning.baseline
                                   ? fmt::format("{:.1f}% {} than with {}'s own schedules ({:.1f} ms), ",
                                                 100.0 * std::abs(saved(best.time, tuning.baseline->time)),
                                                 best.time > tuning.baseline->time ? "more" : "less",
                                                 heading.space.framework.name, milliseconds(tuning.baseline->time))
                                   : std::string{};
  const std::string speed =
      fmt::format("The first plan: {} tokens per second.", reports::with_commas(std::llround(best.tokens_per_second)));
  const std::string text =
      has_no_overlap(tuning)
          ? fmt::format("{} A step takes {:.1f} ms with every schedule, because there is nothing to overlap.{}", speed,
                        milliseconds(best.time), fastest_baseline(heading, tuning))
          : fmt::format(
                "{} With the best schedule at every site a step takes {:.1f} ms: {}{:.1f}% less than with "
                "serial collectives ({:.1f} ms), {:.1f}% less than with {} everywhere ({:.1f} ms), the best "
                "single strategy.{}{}",
                speed, milliseconds(best.time), baseline, 100.0 * saved(best.time, tuning.serial.time),
                milliseconds(tuning.serial.time), 100.0 * saved(best.time, tuning.with_single.time),
                tuning.single->name, milliseconds(tuning.with_single.time), lower_bound(tuning),
                fastest_baseline(heading, tuning));
  std::string not_compared;
  for (const StrategyWithoutSchedule& omitted : tuning.without_schedule) {
    not_compared +=
        wrapped(fmt::format("Not compared, {} everywhere: {}.", omitted.strategy->name, omitted.reason), "", "");
  }
  const StepBreakdown& parts = best.parts;
  return "\n" + wrapped(text, "", "") + not_compared + other_exchange(tuning) +
         wrapped(fmt::format("Parts of the step, in ms: compute {:.1f}, waiting {:.1f} (pipeline bubble, sends, host), "
                             "gradients {:.1f}, optimizer {:.1f}.",
                             milliseconds(parts.compute), milliseconds(parts.waiting), milliseconds(parts.gradients),
                             milliseconds(parts.optimizer)),
                 "", "");
}

std::string rate(const TunedSite& site) {
  return site.rate_to_hide ? fmt::format("{:.2f}x", *site.rate_to_hide) : std::string{"never"};
}

std::string sites(const Tuning& tuning) {
  if (tuning.sites.empty()) {
    const bool is_single = tuning.best.front().plan.tensor == 1;
    return wrapped(fmt::format("No GEMM of tensor ranks has a collective that a schedule could hide: there is {}.",
                               is_single ? "one tensor rank" : "no sequence parallelism"),
                   "\n", "");
  }
  constexpr const char* line = "  {:<17} {:>8} {:>8} {:>6} {:>8} {:>6} {:>8} {:>8}\n";
  std::string text = "\nSites of the step, one micro-batch, times in us\n" +
                     fmt::format(line, "", "serial", "best", "saves", "compute", "hidden", "Calculon", "Calculon") +
                     fmt::format(line, "", "", "", "", "alone", "at", "pipe", "ring");
  constexpr std::size_t longest_name = 19;  // a longer one, such as shared_gate_up_backward, has its own line
  for (const TunedSite& site : tuning.sites) {
    const auto us = [](Duration time) { return fmt::format("{:.1f}", to_microseconds(time)); };
    const bool is_long = site.name.size() > longest_name;
    text += is_long ? fmt::format("  {}\n", site.name) : "";
    text += fmt::format(line, is_long ? "" : site.name, us(site.serial.time), us(site.best.time),
                        fmt::format("{:.1f}%", 100.0 * saved(site.best.time, site.serial.time)),
                        us(site.serial.compute), rate(site), us(site.calculon.pipe), us(site.calculon.ring));
    text += wrapped(schedule_in_words(site.scope, site.best), "      ", "      ");
  }
  return text +
         wrapped(
             "hidden at: link speed, relative to today's, at which the best schedule comes within 1% of its time with "
             "free communication. Calculon's formulas assume that a cut GEMM is as efficient as a whole one.",
             "  ", "  ");
}

/// Returns the schedule that is best by the requested measure; other_of() returns the best by the other measure.
const SampledSite& chosen_of(const SampledChoice& sampled, Minimize minimize) {
  return minimize == Minimize::p99 ? sampled.by_p99 : sampled.by_mean;
}
const SampledSite& other_of(const SampledChoice& sampled, Minimize minimize) {
  return minimize == Minimize::p99 ? sampled.by_mean : sampled.by_p99;
}

bool is_same(const SiteTime& a, const SiteTime& b) {
  return a.strategy == b.strategy && a.time == b.time && a.kernels == b.kernels;
}

/// Returns how much longer one time is than another, such as "+1.2%".
std::string difference(Duration time, Duration base) {
  return with_sign(100.0 * (to_seconds(time) / to_seconds(base) - 1.0), 1) + "%";
}

/// Returns percentiles of the step for the chosen schedules, and for the best schedules by the other measure.
std::string tails(const TuneHeading& heading, const Tuning& tuning) {
  if (!tuning.tails) {
    return {};
  }
  const auto& [chosen, other] = *tuning.tails;
  return "\n" + wrapped(fmt::format("Step time over machines with random GPUs: mean {:.1f} ms, p50 {:.1f}, p95 {:.1f}, "
                                    "p99 {:.1f}. With the sites chosen by the {}: mean {}, p99 {}.",
                                    milliseconds(chosen.mean), milliseconds(chosen.p50), milliseconds(chosen.p95),
                                    milliseconds(chosen.p99), heading.minimize == Minimize::p99 ? "mean" : "p99",
                                    difference(other.mean, chosen.mean), difference(other.p99, chosen.p99)),
                        "", "");
}

/// Returns a sentence about the objective and, for sampled sites, the cost of choosing by the other measure.
std::string choices(const TuneHeading& heading, const Tuning& tuning) {
  const bool by_p99 = heading.minimize == Minimize::p99;
  if (tuning.sites.empty() && heading.samples > 0) {
    return "\n" + wrapped(fmt::format("Objective: {} of the step under jitter {}. The step has no sites.",
                                      by_p99 ? "p99" : "mean", heading.jitter),
                          "", "");
  }
  if (tuning.sites.empty() || !tuning.sites.front().sampled) {
    return "\n" + wrapped(
                      "Objective: time of each site without jitter. --jitter default minimizes its mean under "
                      "jitter, --minimize p99 the p99 of the step.",
                      "", "");
  }
  std::string text =
      "\n" + wrapped(fmt::format("Objective: {} under jitter {}, {} samples of every site with the same draws for all "
                                 "schedules; times of one run in us",
                                 by_p99 ? "p99 of the step" : "mean of every site", heading.jitter, heading.samples),
                     "", "");
  constexpr const char* line = "  {:<17} {:>9} {:>9} {:>11} {:>11}\n";
  text += fmt::format(line, "", "mean", "p99", "serial mean", "serial p99");
  for (const TunedSite& site : tuning.sites) {
    const SampledSite& chosen = chosen_of(*site.sampled, heading.minimize);
    const SampledSite& other = other_of(*site.sampled, heading.minimize);
    const auto us = [](Duration time) { return fmt::format("{:.1f}", to_microseconds(time)); };
    text += fmt::format(line, site.name, us(chosen.times.mean), us(chosen.times.p99),
                        us(site.sampled->serial.times.mean), us(site.sampled->serial.times.p99));
    text += is_same(chosen.schedule, other.schedule)
                ? fmt::format("      the {} chooses the same schedule\n", by_p99 ? "mean" : "p99")
                : wrapped(fmt::format("the {} would choose {}: mean {}, p99 {}", by_p99 ? "mean" : "p99",
                                      schedule_in_words(site.scope, other.schedule),
                                      difference(other.times.mean, chosen.times.mean),
                                      difference(other.times.p99, chosen.times.p99)),
                          "      ", "      ");
  }
  return text;
}

// --- JSON ------------------------------------------------------------------------------------------------------------

Json plan_json(const TrainingPlan& plan) {
  Json json;
  for (const auto& [name, value] : reports::layout_cells(plan)) {
    json[std::string(name)] = std::visit([](auto cell) { return Json(cell); }, value);
  }
  return json;
}

Json step_json(const StepPrediction& step) {
  return {{"time_ms", milliseconds(step.time)},
          {"tokens_per_second", step.tokens_per_second},
          {"mfu", step.mfu},
          {"hfu", step.hfu},
          {"memory_gb", gigabytes(step.memory.total())}};
}

Json tail_json(const StepTail& tail) {
  return {{"mean_ms", milliseconds(tail.mean)},
          {"p50_ms", milliseconds(tail.p50)},
          {"p95_ms", milliseconds(tail.p95)},
          {"p99_ms", milliseconds(tail.p99)}};
}

Json sampled_json(Scope scope, const SampledSite& sampled) {
  return {{"strategy", sampled.schedule.strategy->name},
          {"parameters", parameters_of(*sampled.schedule.strategy, kinds_of(scope), sampled.schedule.options)},
          {"mean_us", to_microseconds(sampled.times.mean)},
          {"p99_us", to_microseconds(sampled.times.p99)}};
}

Json samples_json(const TunedSite& site) {
  return !site.sampled ? Json()
                       : Json{{"serial", sampled_json(site.scope, site.sampled->serial)},
                              {"by_mean", sampled_json(site.scope, site.sampled->by_mean)},
                              {"by_p99", sampled_json(site.scope, site.sampled->by_p99)}};
}

Json overlap_json(const OverlapChoices& choices) {
  Json gemms = Json::array();
  for (const OverlapChoice& choice : choices.gemms) {
    gemms.push_back({{"key", fmt::format("{}_fprop", choice.gemm.name)},
                     {"method", name_of(choice.method)},
                     {"prices", choices.by_own_prices() ? "te" : "ideal"},
                     {"overlapped_us", to_microseconds(choice.overlapped.time)},
                     {"serial_us", to_microseconds(choice.serial.time)}});
  }
  return gemms;
}

Json site_json(const TunedSite& site) {
  return {{"site", site.name},
          {"strategy", site.best.strategy->name},
          {"parameters", parameters_of(*site.best.strategy, kinds_of(site.scope), site.best.options)},
          {"serial_us", to_microseconds(site.serial.time)},
          {"best_us", to_microseconds(site.best.time)},
          {"compute_us", to_microseconds(site.serial.compute)},
          {"link_rate_to_hide", site.rate_to_hide ? Json(*site.rate_to_hide) : Json()},
          {"sampled", samples_json(site)},
          {"calculon_none_us", to_microseconds(site.calculon.none)},
          {"calculon_pipe_us", to_microseconds(site.calculon.pipe)},
          {"calculon_ring_us", to_microseconds(site.calculon.ring)}};
}

}  // namespace

std::string schedule_in_words(Scope scope, const SiteTime& site) {
  return reports::strategy_label(std::string{site.strategy->name},
                                 parameters_of(*site.strategy, kinds_of(scope), site.options));
}

/// Returns Megatron's pipeline arguments. If the first and the last chunk have one layer less than the others, Megatron
/// counts embedding and loss as layers.
std::string megatron_pipeline(const Transformer& model, const TrainingPlan& plan) {
  std::string text = fmt::format(" --pipeline-model-parallel-size {}", plan.pipeline);
  const std::vector<std::int64_t> layers = layers_by_chunk(model, plan);
  if (plan.interleave > 1) {
    text += fmt::format(" --num-layers-per-virtual-pipeline-stage {}", *std::max_element(layers.begin(), layers.end()));
  }
  const bool is_even = model.layers % static_cast<std::int64_t>(layers.size()) == 0;
  return text + (is_even ? "" : " --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split");
}

std::string off_switch(const OverlapChoice& choice, const OverlapChoices& choices) {
  return choice.gemm.scatters       ? "--disable-tp-comm-overlap-rs"
         : !choices.overlaps(false) ? "--disable-tp-comm-overlap-ag"
                                    : fmt::format("tp_comm_overlap_disable_{} of Megatron-Core", choice.gemm.name);
}

namespace {

/// Returns Megatron-LM's arguments that switch TransformerEngine's overlap on, and off where no GEMM uses it.
std::string overlap_arguments(const OverlapChoices& choices, const std::string& config) {
  if (!choices.overlap_somewhere()) {
    return {};
  }
  std::string text = " --tp-comm-overlap";
  for (const bool scatters : {false, true}) {
    const auto choice =
        std::ranges::find_if(choices.gemms, [&](const OverlapChoice& each) { return each.gemm.scatters == scatters; });
    if (choice != choices.gemms.end() && !choices.overlaps(scatters)) {
      text += " " + off_switch(*choice, choices);
    }
  }
  return text + (config.empty() ? "" : " --tp-comm-overlap-cfg " + shell_word(config));
}

/// Returns the arguments for what the backward pass recomputes. Selective recomputation names the modules of
/// Megatron-Core whose parts the framework lists; Megatron-Core has no module for GEMMs, or for the activation of a
/// dense MLP.
std::string megatron_recomputation(const PlanSpace& space, const TrainingPlan& plan) {
  if (plan.recompute == Recompute::full) {
    return " --recompute-granularity full --recompute-method uniform --recompute-num-layers 1";
  }
  const SelectiveRecompute& selective = space.framework.selective;
  std::string modules = selective.attention_core ? " core_attn" : "";
  modules += selective.norms ? " layernorm" : "";
  modules += selective.activation && space.model->experts ? " moe_act" : "";
  if (plan.recompute == Recompute::none || modules.empty()) {
    return "";
  }
  const bool is_default = modules == " core_attn";
  return " --recompute-granularity selective" + (is_default ? "" : " --recompute-modules" + modules);
}

}  // namespace

std::string megatron_arguments(const PlanSpace& space, const TrainingPlan& plan, const OverlapChoices& overlap,
                               const std::string& overlap_config) {
  std::string text =
      fmt::format("--tensor-model-parallel-size {}", plan.tensor) + megatron_pipeline(*space.model, plan);
  // Megatron treats Ulysses as a kind of context parallelism, and both together as a hierarchy of two levels.
  text += plan.sequence_ranks() > 1 ? fmt::format(" --context-parallel-size {}", plan.sequence_ranks()) : "";
  if (plan.ulysses > 1) {
    text += plan.context > 1 ? fmt::format(" --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes {} {}",
                                           plan.ulysses, plan.context)
                             : std::string{" --cp-comm-type a2a"};
  } else if (plan.context > 1) {
    text += plan.context_exchange == ContextExchange::ring ? " --cp-comm-type p2p" : " --cp-comm-type all_gather";
  }
  text += plan.expert > 1 ? fmt::format(" --expert-model-parallel-size {}", plan.expert) : "";
  text += fmt::format(" --micro-batch-size {} --global-batch-size {} --seq-length {}", plan.micro_batch,
                      plan.global_batch, plan.seq);
  // GEMMs in fp8 require bf16 for everything else.
  text += plan.dtype == DType::fp16 ? " --fp16" : plan.dtype == DType::fp32 ? "" : " --bf16";
  text += plan.dtype == DType::fp8 ? " --fp8-format hybrid" : "";
  text +=
      plan.dtype == DType::fp16 && plan.gradient_dtype == DType::fp32 ? " --accumulate-allreduce-grads-in-fp32" : "";
  text += plan.gradient_dtype == DType::bf16 ? " --grad-reduce-in-bf16" : "";
  if (plan.sequence_parallel) {
    text += " --sequence-parallel" + overlap_arguments(overlap, overlap_config);
  }
  text += plan.optimizer == Optimizer::sgd ? " --optimizer sgd" : "";
  text += plan.zero == Zero::optimizer ? " --use-distributed-optimizer" : "";
  if (plan.zero != Zero::weights && plan.overlap_gradients && plan.replicas() > 1) {
    text += plan.zero == Zero::none ? " --overlap-grad-reduce" : " --overlap-grad-reduce --overlap-param-gather";
  }
  // In Megatron, PyTorch's FSDP2 does not spread experts over ranks; Megatron's own FSDP does. Without FSDP, replicas
  // share no gradients.
  if (plan.zero == Zero::gradients || plan.zero == Zero::weights) {
    text += fmt::format(
        " --use-megatron-fsdp --data-parallel-sharding-strategy {} --use-distributed-optimizer "
        "--no-gradient-accumulation-fusion",
        plan.zero == Zero::weights ? "optim_grads_params" : "optim_grads");
  }
  text += megatron_recomputation(space, plan);
  text += plan.fused_attention ? "" : " --attention-backend unfused";
  return plan.dropout ? text : text + " --attention-dropout 0 --hidden-dropout 0";
}

namespace {

/// Returns the file that `tune_files` writes for --tp-comm-overlap-cfg; empty if there is none.
std::string overlap_config_of(const TuneHeading& heading, const Tuning& tuning) {
  return heading.folder.empty() || !tuning.overlap.overlap_somewhere()
             ? std::string{}
             : fmt::format("{}/{}", heading.folder, overlap_config_file);
}

/// Returns "qkv_fprop ring_exchange -12.3%; fc1_fprop none (ring_exchange +4.2%)".
std::string methods_in_words(const OverlapChoices& choices) {
  std::vector<std::string> methods;
  for (const OverlapChoice& choice : choices.gemms) {
    const std::string change = with_sign(100.0 * choice.change(), 1) + "%";
    methods.push_back(choice.method == OverlapMethod::none
                          ? fmt::format("{}_fprop none (ring_exchange {})", choice.gemm.name, change)
                          : fmt::format("{}_fprop {} {}", choice.gemm.name, name_of(choice.method), change));
  }
  return fmt::format("{}", fmt::join(methods, "; "));
}

/// States how TransformerEngine's methods were chosen, and which prices the times of the plan assume.
std::string overlap_in_words(const OverlapChoices& choices) {
  if (!choices.by_own_prices()) {
    return fmt::format(
        "TransformerEngine's methods and the times above assume ideal kernels, because the prices of its kernels are "
        "unknown: {}. Its kernels may take longer, even longer than serial collectives.",
        choices.no_prices);
  }
  if (choices.gemms.empty()) {
    return "The layers have no GEMM that TransformerEngine overlaps.";
  }
  std::string text = fmt::format(
      "TransformerEngine's methods in forward passes are chosen by the prices of its kernels. Change against serial: "
      "{}.",
      methods_in_words(choices));
  if (!choices.overlap_somewhere()) {
    text += " They would save no time, so --tp-comm-overlap is left out.";
  }
  for (const OverlapChoice& choice : choices.gemms) {
    if (choice.method == OverlapMethod::none && !choice.gemm.scatters && choices.overlaps(false)) {
      text += fmt::format(" Set {}.", off_switch(choice, choices));
    }
  }
  const bool is_against_price = std::ranges::any_of(choices.gemms, [](const OverlapChoice& choice) {
    return (choice.method == OverlapMethod::none) != (choice.change() >= 0.0);
  });
  text += is_against_price ? " The reduce-scatters of proj_fprop and fc2_fprop have one switch." : "";
  text += choices.unmeasured.empty() ? "" : fmt::format(" {}.", choices.unmeasured);
  return text +
         " Methods in backward passes and the times above assume ideal kernels, because TransformerEngine's were "
         "measured in forward passes only.";
}

/// Only Megatron-LM, and frameworks that take its arguments, configure a layout by these arguments.
std::string megatron_heading(std::string_view framework) {
  const bool takes_arguments =
      framework.empty() || framework.starts_with("megatron") || framework.starts_with("mindspeed");
  return takes_arguments ? "\nMegatron-LM's arguments\n"
                         : fmt::format("\nMegatron-LM's arguments for this layout, not {}'s\n", framework);
}

}  // namespace

namespace {

/// Returns the memory that the smallest layout needs, and what may reduce it. Requires `tuning` to have no plan that
/// fits.
std::string out_of_memory(const TuneHeading& heading, const Tuning& tuning) {
  const double needed = gigabytes(tuning.least_memory);
  const double limit = tuning.memory_limit / 1e9;
  const bool is_fixed = !(heading.space.wish == PlanWish{});
  return fmt::format(
      "Every plan is out of memory: the smallest layout needs {:.1f} GB per GPU, {:.2f} times the {:.1f} GB that a "
      "plan may use. Use more GPUs, or GPUs with more memory{}.",
      needed, needed / limit, limit, is_fixed ? ", or leave the settings of the layout free" : "");
}

}  // namespace

std::string tune_text(const TuneHeading& heading, const Tuning& tuning) {
  std::string text = head(heading, tuning);
  if (tuning.best.empty()) {
    return text + wrapped(out_of_memory(heading, tuning), "", "");
  }
  text += plans(heading, tuning) + gains(heading, tuning) + sites(tuning) + choices(heading, tuning) +
          tails(heading, tuning);
  text += megatron_heading(heading.space.framework.name) +
          wrapped(megatron_arguments(heading.space, tuning.best.front().plan, tuning.overlap,
                                     overlap_config_of(heading, tuning)),
                  "  ", "  ");
  const std::string mindspeed = mindspeed_arguments(heading.space, tuning);
  if (tuning.best.front().plan.sequence_parallel && mindspeed.empty()) {
    text += wrapped(fmt::format("({})", overlap_in_words(tuning.overlap)), "  ", "  ");
  }
  if (tuning.best.front().plan.schedule == PipelineSchedule::zero_bubble) {
    text += "  (Megatron-LM has no zero-bubble pipeline: these run 1F1B)\n";
  }
  if (tuning.best.front().plan.recompute == Recompute::selective && heading.space.framework.selective.alternates()) {
    text += "  (Megatron-LM recomputes whole modules, not every second GEMM: these\n  recompute less)\n";
  }
  return text + (mindspeed.empty() ? "" : fmt::format("Additional arguments of MindSpeed\n  {}\n", mindspeed));
}

namespace {

/// Adds the steps with which the first plan is compared, the schedules of the plan's sites, and its arguments. Requires
/// `tuning` to have a plan.
void add_fastest_plan(Json& json, const TuneHeading& heading, const Tuning& tuning) {
  json["ties"] = tuning.ties;
  json["tie_rule"] = tuning.tie_rule.empty() ? Json() : Json(tuning.tie_rule);
  if (tuning.baseline) {
    json["baseline"] = step_json(*tuning.baseline);
  }
  json["serial"] = step_json(tuning.serial);
  if (tuning.fastest_baseline) {
    json["fastest_baseline"] = plan_json(tuning.fastest_baseline->plan);
    json["fastest_baseline"].update(step_json(tuning.fastest_baseline->step));
  }
  json["single"] = step_json(tuning.with_single);
  json["single"]["strategy"] = tuning.single->name;
  for (const StrategyWithoutSchedule& omitted : tuning.without_schedule) {
    json["left_out"].push_back({{"strategy", omitted.strategy->name}, {"reason", omitted.reason}});
  }
  json["bound"] = step_json(tuning.bound);
  if (tuning.other_exchange) {
    const TrainingPlan& plan = tuning.best.front().plan;
    json["other_exchange"] = {{"context_exchange", word_of(context_exchange_choices, other_exchange_of(plan))}};
    json["other_exchange"].update(step_json(*tuning.other_exchange));
  }
  if (tuning.tails) {
    json["tail"] = tail_json(tuning.tails->first);
    json["tail_of_other_choice"] = tail_json(tuning.tails->second);
  }
  json["sites"] = Json::array();
  for (const TunedSite& site : tuning.sites) {
    json["sites"].push_back(site_json(site));
  }
  json["tp_comm_overlap"] = overlap_json(tuning.overlap);
  json["megatron"] =
      megatron_arguments(heading.space, tuning.best.front().plan, tuning.overlap, overlap_config_of(heading, tuning));
  if (const std::string mindspeed = mindspeed_arguments(heading.space, tuning); !mindspeed.empty()) {
    json["mindspeed"] = mindspeed;
  }
}

}  // namespace

std::string tune_json(const TuneHeading& heading, const Tuning& tuning) {
  const TrainingPlan& base = heading.space.base;
  Json json{{"schema", "commfuse.tune/1"},
            {"model_version", model_version},
            {"model", heading.model},
            {"hardware", heading.hardware},
            {"link_bandwidth", heading.link_bandwidth},
            {"network_bandwidth", heading.network_bandwidth},
            {"gpus", heading.space.gpus},
            {"batch", base.global_batch},
            {"seq", base.seq},
            {"dtype", name_of(base.dtype)},
            {"framework", heading.space.framework.name.empty() ? Json() : Json(heading.space.framework.name)},
            {"minimize", heading.minimize == Minimize::p99 ? "p99" : "mean"},
            {"jitter", heading.jitter},
            {"samples", heading.samples},
            {"plans", tuning.plans},
            {"fitting", tuning.fitting}};
  if (heading.evidence) {
    json["measured"] = {{"time_ms", milliseconds(heading.evidence->measured)},
                        {"predicted_ms", milliseconds(heading.evidence->predicted)},
                        {"error", heading.evidence->error}};
  }
  json["best"] = Json::array();
  for (const TunedPlan& tuned : tuning.best) {
    Json row = plan_json(tuned.plan);
    row.update(step_json(tuned.step));
    row["time_error"] = tuned.error ? Json(*tuned.error) : Json();
    row["win_probability"] = tuned.win_probability ? Json(*tuned.win_probability) : Json();
    row["ties"] = tuned.ties;
    if (tuning.correction) {
      row["correction"] = tuned.correction;
    }
    json["best"].push_back(std::move(row));
  }
  if (tuning.best.empty()) {
    json["least_memory_gb"] = gigabytes(tuning.least_memory);
    json["memory_limit_gb"] = tuning.memory_limit / 1e9;
  } else {
    add_fastest_plan(json, heading, tuning);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace commfuse::sim
