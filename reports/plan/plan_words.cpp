// SPDX-License-Identifier: Apache-2.0
#include "reports/plan/plan_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/text/amount.h"
#include "reports/commas.h"

namespace commfuse::reports {

namespace {

/// Returns " with commfuse at 6 of 8 sites, sliced at 2", or " as megatron runs it" for a framework; empty if no site
/// has a collective.
std::string schedules_in_words(const CapacityPlan& plan, const CapacityKind& kind) {
  if (!plan.framework.empty()) {
    return fmt::format(" as {} runs it", plan.framework);
  }
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const CapacitySite& site : kind.sites) {
    const auto known = std::ranges::find(counts, site.strategy, &std::pair<std::string, std::size_t>::first);
    known == counts.end() ? static_cast<void>(counts.emplace_back(site.strategy, 1))
                          : static_cast<void>(++known->second);
  }
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (counts.size() == 1) {
    return fmt::format(" with {} at every site", counts.front().first);
  }
  std::string text;
  for (const auto& [strategy, sites] : counts) {
    text += text.empty() ? fmt::format(" with {} at {} of {} sites", strategy, sites, kind.sites.size())
                         : fmt::format(", {} at {}", strategy, sites);
  }
  return text;
}

std::string first_sentence(const CapacityPlan& plan, const CapacityKind& kind, const CapacityRun& run) {
  return fmt::format("Train on {} {} ({}){}: {} days (90% interval {} to {}), {} ({} to {}), {} per million tokens.",
                     run.gpus, kind.name, layout_in_words(run.layout), schedules_in_words(plan, kind),
                     days(run.days.value), days(run.days.low), days(run.days.high), money(plan, run.cost.value),
                     money(plan, run.cost.low), money(plan, run.cost.high), money(plan, run.cost_per_mtok.value));
}

/// Compares the framework with the schedules of CommFuse.
std::string against_commfuse(const CapacityPlan& plan) {
  const auto commfuse = std::ranges::find(plan.what_ifs, "CommFuse at every site", &WhatIf::change);
  const double longer = commfuse == plan.what_ifs.end() ? 0.0 : 100.0 * commfuse->days_share;
  return std::abs(longer) < 0.05 ? "CommFuse at every site would take the same time"
                                 : fmt::format("CommFuse at every site would take {:.1f}% {}", std::abs(longer),
                                               longer < 0.0 ? "less" : "longer");
}

/// Returns "serial collectives would take 13.5% longer, data slicing (CoC) 4.2%", or a statement that nothing differs.
std::string against_schedules(const CapacityPlan& plan) {
  if (plan.best_kind()->sites.empty()) {
    return "this layout has no collective that a GEMM could hide";
  }
  if (!plan.framework.empty()) {
    return against_commfuse(plan);
  }
  std::string text;
  for (const std::string_view name : {"serial collectives", "data slicing (CoC)"}) {
    const auto what_if = std::ranges::find(plan.what_ifs, name, &WhatIf::change);
    if (what_if != plan.what_ifs.end() && what_if->days_share >= 0.0005) {
      const double longer = 100.0 * what_if->days_share;
      text += text.empty() ? fmt::format("{} would take {:.1f}% longer", name, longer)
                           : fmt::format(", {} {:.1f}%", name, longer);
    }
  }
  return text.empty() ? "other schedules would take the same time" : text;
}

/// Compares with the cheapest of the other kinds that meet the limits.
std::string against_kinds(const CapacityPlan& plan, const CapacityRun& run) {
  const CapacityRun* next = nullptr;
  for (std::size_t i = 0; i < plan.kinds.size(); ++i) {
    const CapacityRun* other = i == *plan.answer ? nullptr : plan.kinds[i].best();
    if (other != nullptr && (next == nullptr || other->cost.value < next->cost.value)) {
      next = other;
    }
  }
  if (next == nullptr || run.cost.value <= 0.0) {
    return {};
  }
  const double difference = 100.0 * (next->cost.value / run.cost.value - 1.0);
  return fmt::format("; {} {} would cost {:.1f}% {}", next->gpus, next->kind, std::abs(difference),
                     difference < 0.0 ? "less" : "more");
}

std::string capitalized(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

std::string second_sentence(const CapacityPlan& plan, const CapacityRun& run) {
  const std::string comparisons = against_schedules(plan) + against_kinds(plan, run);
  return has_limits(plan) ? fmt::format("The chance of meeting {} is {}; {}.", limits_in_words(plan),
                                        likelihood(run.confidence), comparisons)
                          : capitalized(comparisons) + ".";
}

/// Returns " Fewer GPUs are no slower: 16,384 h100 would take 1.8 days and $1.80M."; empty unless the user's exact
/// number of GPUs exceeds the number that is useful.
std::string smaller_sentence(const CapacityPlan& plan, const CapacityKind& kind) {
  return kind.smaller ? fmt::format(" Fewer GPUs are no slower: {} {} would take {} days and {}.",
                                    with_commas(kind.smaller->gpus), kind.name, days(kind.smaller->days),
                                    money(plan, kind.smaller->cost))
                      : "";
}

/// Returns " This plan ties in cost with 128 h100 and 256 h100 (all within 1.7%); the tie is broken by fewer GPUs.";
/// empty without ties. Runs without a cost have no relative difference.
std::string ties_sentence(const CapacityPlan& plan, const CapacityRun& run) {
  if (plan.ties.empty()) {
    return {};
  }
  constexpr std::size_t max_named = 4;
  const auto objective = [&](const CapacityRun& candidate) {
    return plan.deadline_days ? candidate.cost.value : candidate.days.value;
  };
  std::vector<std::string> names;
  double least = objective(run);
  double largest = objective(run);
  for (const RunPlace& place : plan.ties) {
    const CapacityRun& other = plan.kinds[place.kind].runs[place.run];
    least = std::min(least, objective(other));
    largest = std::max(largest, objective(other));
    if (names.size() < max_named) {
      names.push_back(fmt::format("{} {}", other.gpus, other.kind));
    }
  }
  if (plan.ties.size() > max_named) {
    names.push_back(fmt::format("{} more", plan.ties.size() - max_named));
  }
  return fmt::format(" This plan ties in {} with {}{}; the tie is broken by {}.", plan.deadline_days ? "cost" : "days",
                     names_in_words(names),
                     least > 0.0 ? fmt::format(" (all within {:.1f}%)", 100.0 * (largest / least - 1.0)) : "",
                     plan.tie_rule);
}

}  // namespace

std::string large(double number) { return large_number(number); }

std::string money(const CapacityPlan& plan, double amount) { return amount_of_money(plan.currency, amount); }

std::string days(double number) { return amount_of_days(number); }
std::string step_seconds(double number) { return fmt::format("{:.3f}", number); }
std::string share_percent(double share) { return fmt::format("{:.1f}%", 100.0 * share); }
std::string likelihood(double share) {
  return share >= 0.995 ? "over 99%" : share <= 0.005 ? "below 1%" : fmt::format("{:.0f}%", 100.0 * share);
}
std::string plain(double number) {
  return std::abs(number) >= 1e4 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}

std::string tick_money(const CapacityPlan& plan, double amount) {
  std::string text = money(plan, amount);
  const std::size_t point = text.rfind('.');
  if (point == std::string::npos) {
    return text;
  }
  std::size_t end = text.find_first_not_of("0123456789", point + 1);
  end = std::min(end, text.size());
  const std::size_t last = text.find_last_not_of('0', end - 1);
  text.erase(last == point ? point : last + 1, end - (last == point ? point : last + 1));
  return text;
}

std::string change_in_words(std::string change) {
  if (const std::size_t gap = change.find(" %"); gap != std::string::npos) {
    change.erase(gap, 1);
  }
  return change;
}

std::string input_in_words(const std::string& input) {
  static const std::map<std::string, const char*, std::less<>> words{{"rate of links", "rate of links in a node"},
                                                                     {"rate of network", "rate of the network"},
                                                                     {"spread of the GPUs", "differences between GPUs"},
                                                                     {"price of a GPU", "price per GPU-hour"},
                                                                     {"failures", "rate of failures"}};
  const auto known = words.find(input);
  return known == words.end() ? input : known->second;
}

std::string deadline_in_words(const CapacityPlan& plan) {
  const bool is_day = plan.deadline_text.find('-') != std::string::npos;
  return is_day ? fmt::format("{} ({} days)", plan.deadline_text, days(*plan.deadline_days))
                : days(*plan.deadline_days) + " days";
}

std::vector<const Sensitivity*> by_effect(const std::vector<Sensitivity>& sensitivities) {
  std::vector<const Sensitivity*> sorted;
  for (const Sensitivity& sensitivity : sensitivities) {
    sorted.push_back(&sensitivity);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Sensitivity* a, const Sensitivity* b) {
    return std::abs(a->cost_high - a->cost_low) > std::abs(b->cost_high - b->cost_low);
  });
  return sorted;
}

double longest_shown_days(const CapacityPlan& plan) {
  const CapacityKind* best = plan.best_kind();
  double shortest = best != nullptr ? best->best()->days.value : std::numeric_limits<double>::infinity();
  std::vector<double> all_days;
  for (const CapacityKind& kind : plan.kinds) {
    for (const CapacityRun& run : kind.runs) {
      shortest = best != nullptr ? shortest : std::min(shortest, run.days.value);
      all_days.push_back(run.days.value);
    }
  }
  constexpr double near = 3.0;
  constexpr double far = 5.0;
  const auto shown = std::ranges::count_if(all_days, [&](double length) { return length <= near * shortest; });
  return (shown < 4 ? far : near) * shortest;
}

std::string layout_in_words(const TrainingPlan& layout) {
  std::string text = fmt::format("TP {}", layout.tensor);
  if (layout.pipeline > 1) {
    text += fmt::format(", PP {}", layout.pipeline);
    text += layout.interleave > 1 ? fmt::format(" with {} chunks each", layout.interleave) : "";
  }
  text += layout.context > 1 ? fmt::format(", CP {}", layout.context) : "";
  text += layout.ulysses > 1 ? fmt::format(", Ulysses {}", layout.ulysses) : "";
  text += layout.expert > 1 ? fmt::format(", EP {}", layout.expert) : "";
  return text + fmt::format(", DP {}", layout.data);
}

std::string layout_in_short(const TrainingPlan& layout) {
  return fmt::format("{}x{}x{}x{}", layout.tensor, layout.pipeline, layout.data, layout.sequence_ranks());
}

bool has_limits(const CapacityPlan& plan) { return plan.deadline_days || plan.budget; }

const char* limits_in_words(const CapacityPlan& plan) {
  return plan.deadline_days ? (plan.budget ? "deadline and budget" : "the deadline") : "the budget";
}

std::string needed_gpus(const CapacityPlan& plan) {
  std::string text;
  for (const CapacityKind& kind : plan.kinds) {
    if (kind.gpus_for_deadline) {
      text += fmt::format("{}{} {}", text.empty() ? "about " : " or ", with_commas(*kind.gpus_for_deadline), kind.name);
    }
  }
  return text;
}

std::string available_in_words(const CapacityKind& kind) {
  const std::string available = with_commas(kind.available) + " available";
  return !kind.count ? available
         : *kind.count == kind.available
             ? fmt::format("exactly {} GPU{}", with_commas(*kind.count), *kind.count == 1 ? "" : "s")
             : fmt::format("exactly {} of {}", with_commas(*kind.count), available);
}

std::string model_error_sentence(const CapacityPlan& plan) {
  if (plan.has_measured_step) {
    return "The model's own error is what remains of it after the measured step.";
  }
  const std::string of_run = fmt::format(
      "For the same step, commfuse-sim run uses {}: the model's error on measured steps in known frameworks.",
      share_percent(plan.model_error_of_run));
  switch (plan.model_error_source) {
    case ModelErrorSource::file: return fmt::format("The plan states the model's own error. {}", of_run);
    case ModelErrorSource::measured_steps:
      return "The model's own error is that on measured steps in known frameworks, as in commfuse-sim run.";
    case ModelErrorSource::steps_before_settings: break;
  }
  return fmt::format(
      "{} No measured step ran the plan's schedules, so the plan uses 1.48 times the median error of nine "
      "Megatron-Core steps that were predicted without the settings of their framework.",
      of_run);
}

std::string plan_headline(const CapacityPlan& plan) {
  const CapacityKind* kind = plan.best_kind();
  if (kind == nullptr) {
    const std::string needed = needed_gpus(plan);
    return needed.empty() ? "No option meets the limits."
                          : fmt::format("No option meets the limits: the deadline needs {}.", needed);
  }
  const CapacityRun& run = *kind->best();
  const std::string totals = fmt::format("{} {} take{} {} days and {}.", with_commas(run.gpus), kind->name,
                                         run.gpus == 1 ? "s" : "", days(run.days.value), money(plan, run.cost.value));
  return has_limits(plan) ? fmt::format("{} The chance of meeting {} is {}.", totals, limits_in_words(plan),
                                        likelihood(run.confidence))
                          : totals;
}

std::string plan_reasons(const CapacityPlan& plan) {
  const CapacityKind* kind = plan.best_kind();
  if (kind == nullptr) {
    std::string text;
    for (const CapacityKind& missed : plan.kinds) {
      text += fmt::format("{}For {}, {}.{}", text.empty() ? "" : " ", missed.name, missed.reason,
                          smaller_sentence(plan, missed));
    }
    return text;
  }
  const std::string comparisons = capitalized(against_schedules(plan) + against_kinds(plan, *kind->best()));
  const std::string schedules = schedules_in_words(plan, *kind);
  return fmt::format("Layout: {}{}{}. {}.{}{}", layout_in_words(kind->best()->layout), schedules.empty() ? "" : ",",
                     schedules, comparisons, ties_sentence(plan, *kind->best()), smaller_sentence(plan, *kind));
}

std::string plan_verdict(const CapacityPlan& plan) {
  const CapacityKind* kind = plan.best_kind();
  if (kind == nullptr) {
    return plan_headline(plan) + " " + plan_reasons(plan);
  }
  return first_sentence(plan, *kind, *kind->best()) + " " + second_sentence(plan, *kind->best()) +
         ties_sentence(plan, *kind->best()) + smaller_sentence(plan, *kind);
}

}  // namespace commfuse::reports
