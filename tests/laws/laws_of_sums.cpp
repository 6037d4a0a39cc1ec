// SPDX-License-Identifier: Apache-2.0
// Parts add up, percentiles are in order, and irrelevant changes make no difference.
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "tests/laws/law.h"

namespace commfuse::laws {

namespace {

constexpr double broken = 1e9;

double holds_or_breaks(bool holds) { return holds ? 1.0 : broken; }

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

std::optional<double> layer_adds_up(const Outcome& outcome, const Outcome&) {
  if (outcome.whole_model) {
    return std::nullopt;
  }
  const Breakdown& parts = outcome.parts();
  const bool makespan_adds_up =
      parts.makespan == parts.compute + parts.slicing + parts.stretch + parts.local + parts.exposed;
  const bool exposed_adds_up = parts.exposed == parts.head + parts.bubble + parts.tail - parts.local;
  return holds_or_breaks(makespan_adds_up && exposed_adds_up &&
                         parts.makespan == parts.busy + parts.local + parts.exposed);
}

std::optional<double> no_part_is_negative(const Outcome& outcome, const Outcome&) {
  if (outcome.whole_model) {
    return std::nullopt;
  }
  const Breakdown& parts = outcome.parts();
  const Duration smallest =
      std::min({parts.compute, parts.local, parts.exposed, parts.head, parts.bubble, parts.tail, parts.busy});
  return holds_or_breaks(smallest >= Duration{} && parts.busy <= parts.makespan);
}

double sum_of(const StepRow& row, std::initializer_list<std::string_view> names) {
  double sum = 0.0;
  for (const std::string_view name : names) {
    sum += row.number(name);
  }
  return sum;
}

std::optional<double> step_adds_up(const Outcome& outcome, const Outcome&) {
  if (!outcome.whole_model || !outcome.step.has("compute_ms")) {
    return std::nullopt;
  }
  const StepRow& row = outcome.step;
  const double time = sum_of(row, {"compute_ms", "waiting_ms", "gradients_ms", "optimizer_ms"});
  const double memory = sum_of(row, {"weights_gb", "gradients_gb", "optimizer_gb", "activations_gb", "gathered_gb"});
  const double smallest = std::min({row.number("waiting_ms"), row.number("gradients_ms"), row.number("optimizer_ms")});
  return holds_or_breaks(close(time, row.number("time_ms")) && close(memory, row.number("memory_gb")) &&
                         smallest >= 0.0);
}

std::optional<double> pass_adds_up(const Outcome& outcome, const Outcome&) {
  if (!outcome.whole_model || !outcome.step.has("attention_ms")) {
    return std::nullopt;
  }
  const StepRow& row = outcome.step;
  constexpr std::array parts{"attention_ms", "mlp_ms", "other_ms", "waiting_ms"};
  const double time = sum_of(row, {parts[0], parts[1], parts[2], parts[3]});
  const bool any_negative = std::ranges::any_of(parts, [&](const char* part) { return row.number(part) < 0.0; });
  return holds_or_breaks(close(time, row.number("time_ms")) && !any_negative);
}

std::optional<double> tokens_follow_from_time(const Outcome& outcome, const Outcome&) {
  if (!outcome.whole_model) {
    return std::nullopt;
  }
  const StepRow& row = outcome.step;
  const double seq = row.text("scope") == "decode" ? 1.0 : static_cast<double>(row.count("seq"));
  const double tokens = static_cast<double>(row.count("batch")) * seq;
  const double rate = row.number("tokens_per_second");
  return holds_or_breaks(close(rate * row.number("time_ms") / 1e3, tokens) &&
                         close(rate, row.number("tokens_per_second_gpu") * static_cast<double>(row.count("gpus"))));
}

std::optional<double> fits_by_its_memory(const Outcome& outcome, const Outcome&) {
  if (!outcome.whole_model || !outcome.step.has("fits")) {
    return std::nullopt;
  }
  return holds_or_breaks(outcome.step.flag("fits") ==
                         (outcome.memory <= outcome.cell("capacity_gb") * 1e9 * (1.0 + 1e-12)));
}

bool brackets(const Estimate& estimate) {
  return !estimate.range || (estimate.range->low <= estimate.value && estimate.value <= estimate.range->high);
}

std::optional<double> percentiles_rise(const Outcome& outcome, const Outcome&) {
  if (outcome.samples.empty()) {
    return std::nullopt;
  }
  const Percentiles& percentiles = outcome.prediction->tails->percentiles;
  const auto [smallest, largest] = std::minmax_element(outcome.samples.begin(), outcome.samples.end());
  const std::array rising{
      *smallest, percentiles.p50.value, percentiles.p95.value, percentiles.p99.value, percentiles.p99_9.value,
      *largest};
  const bool in_order = std::is_sorted(rising.begin(), rising.end());
  const bool mean_inside = *smallest <= percentiles.mean.value && percentiles.mean.value <= *largest;
  return holds_or_breaks(in_order && mean_inside && brackets(percentiles.mean) && brackets(percentiles.p50) &&
                         brackets(percentiles.p95) && brackets(percentiles.p99) && brackets(percentiles.p99_9));
}

std::optional<double> step_percentiles_rise(const Outcome& outcome, const Outcome&) {
  if (!outcome.whole_model || !outcome.step.has("time_p50_ms")) {
    return std::nullopt;
  }
  const StepRow& row = outcome.step;
  const std::array rising{row.number("time_ms"), row.number("time_p50_ms"), row.number("time_p95_ms"),
                          row.number("time_p99_ms"), row.number("time_p99_9_ms")};
  return holds_or_breaks(std::is_sorted(rising.begin() + 1, rising.end()));
}

std::optional<Setting> other_evaluator(const Setting& setting, Draws&) {
  const bool can_simulate = !is_whole_model(setting) && setting.text("evaluator") != "engine" &&
                            setting.text("interference") != "dynamic" && setting.text("faults") == "none";
  return can_simulate ? std::optional(setting.with("evaluator", "engine")) : std::nullopt;
}

std::optional<Setting> without_symmetry(const Setting& setting, Draws&) {
  return is_whole_model(setting) ? std::nullopt : std::optional(setting.with("symmetry", "off"));
}

std::optional<double> equal_results(const Outcome& before, const Outcome& after) {
  const Prediction& a = *before.prediction;
  const Prediction& b = *after.prediction;
  const Breakdown& first = before.parts();
  const Breakdown& other = after.parts();
  const bool are_equal = first.makespan == other.makespan && first.busy == other.busy &&
                         first.exposed == other.exposed && first.head == other.head && first.tail == other.tail &&
                         a.ideal == b.ideal && a.link == b.link && before.samples == after.samples;
  return holds_or_breaks(are_equal);
}

std::optional<Setting> another_seed(const Setting& setting, Draws&) {
  return setting.text("jitter") == "none" ? std::optional(setting.with("seed", std::int64_t{7})) : std::nullopt;
}

std::optional<Setting> more_samples(const Setting& setting, Draws&) {
  return setting.text("jitter") == "none" || is_whole_model(setting)
             ? std::nullopt
             : std::optional(setting.with("samples", 2 * setting.count("samples")));
}

/// Samples are numbered, so a longer series begins with the same samples.
std::optional<double> begins_with_equal_samples(const Outcome& before, const Outcome& after) {
  return holds_or_breaks(std::equal(before.samples.begin(), before.samples.end(), after.samples.begin()));
}

constexpr std::array sum_laws{
    Law{"layer-adds-up", "The parts of a layer's time add up to the picosecond", nullptr, layer_adds_up},
    Law{"no-negative-part", "No part of a time is negative", nullptr, no_part_is_negative},
    Law{"step-adds-up", "The parts of a step's time and memory add up", nullptr, step_adds_up},
    Law{"pass-adds-up", "The parts of a prefill's or a decoding step's time add up", nullptr, pass_adds_up},
    Law{"tokens-per-second", "Tokens per second times the time equal the tokens", nullptr, tokens_follow_from_time},
    Law{"fits", "A model fits if it needs no more memory than the GPU has", nullptr, fits_by_its_memory},
    Law{"percentiles-rise", "Percentiles rise from the smallest to the largest sample", nullptr, percentiles_rise},
    Law{"step-percentiles-rise", "Percentiles of a step rise", nullptr, step_percentiles_rise},
    Law{"replay-is-the-engine", "Replay and engine agree to the picosecond where rates are fixed", other_evaluator,
        equal_results},
    Law{"symmetry", "Replaying one rank for all changes no result", without_symmetry, equal_results},
    Law{"seed-alone", "Without jitter the seed changes no result", another_seed, must_stay<time_of>},
    Law{"more-samples", "A larger number of samples begins with the same samples", more_samples,
        begins_with_equal_samples},
};

}  // namespace

std::span<const Law> laws_of_sums() { return sum_laws; }

}  // namespace commfuse::laws
