// SPDX-License-Identifier: Apache-2.0
#include "reports/plan_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "reports/comparison.h"
#include "reports/plan_names.h"
#include "reports/point_rows.h"
#include "reports/step_pays.h"

namespace commfuse::reports {

namespace {

Contender plan_contender_of(const StepRow& row) {
  const auto share = [&](std::string_view name) {
    return row.has(name) ? std::optional(row.number(name)) : std::nullopt;
  };
  return {row.number("time_ms"), share("time_error"), share("win_probability")};
}

/// Returns the settings of a row except the strategy: the cells before the strategy.
std::vector<std::pair<std::string_view, StepRow::Value>> plan_key(const StepRow& row) {
  std::vector<std::pair<std::string_view, StepRow::Value>> settings;
  const bool is_decode = row.text("scope") == "decode";
  for (const auto& cell : row.cells) {
    if (cell.first == "strategy") {
      break;
    }
    // One decode plan compares schedules that sum whole outputs with schedules whose ranks split the tokens.
    if (!is_decode || cell.first != "sequence_parallel") {
      settings.push_back(cell);
    }
  }
  return settings;
}

/// Returns whether the schedule hides no communication under GEMMs. A decoding step has two such schedules.
bool has_no_overlap(const StepRow& row) {
  return row.text("strategy") == "serial" || row.text("strategy") == "all_reduce";
}

/// Returns the framework's own row, or else the fastest schedule without overlap; null if the plan has neither.
const StepRow* baseline_of(std::span<const StepRow* const> plan) {
  const StepRow* baseline = serial_of(plan);
  if (baseline != nullptr && is_framework(*baseline)) {
    return baseline;
  }
  for (const StepRow* row : plan) {
    const bool is_faster = row->feasible() && has_no_overlap(*row) &&
                           (baseline == nullptr || row->number("time_ms") < baseline->number("time_ms"));
    baseline = is_faster ? row : baseline;
  }
  return baseline;
}

}  // namespace

bool fits(const StepRow& row) { return !row.has("fits") || row.flag("fits"); }

bool is_framework(const StepRow& row) { return row.has("framework") && row.text("framework") == row.text("strategy"); }

const StepRow* serial_of(std::span<const StepRow* const> rows) {
  for (const StepRow* row : rows) {
    if (row->feasible() && is_framework(*row)) {
      return row;
    }
  }
  const auto serial = std::ranges::find_if(
      rows, [](const StepRow* row) { return row->feasible() && row->text("strategy") == "serial"; });
  return serial == rows.end() ? nullptr : *serial;
}

std::optional<PlanSaving> plan_saving(std::span<const StepRow* const> plan, const VerdictRule& rule) {
  PlanSaving saving{.baseline = baseline_of(plan)};
  if (saving.baseline != nullptr) {
    if (const std::optional<PlanSaving> implemented = implementation_saving(plan, *saving.baseline, rule)) {
      return implemented;
    }
  }
  for (const StepRow* row : plan) {
    // An ideal schedule next to implementations is a bound, which nobody can run.
    const bool is_other = row->feasible() && row != saving.baseline && !has_no_overlap(*row) &&
                          !overlaps_nothing(*row) && !is_bound(*row);
    const bool is_faster =
        is_other && (saving.overlap == nullptr || row->number("time_ms") < saving.overlap->number("time_ms"));
    saving.overlap = is_faster ? row : saving.overlap;
  }
  if (saving.baseline == nullptr || saving.overlap == nullptr) {
    return std::nullopt;
  }
  saving.saved = 1.0 - saving.overlap->number("time_ms") / saving.baseline->number("time_ms");
  const Verdict verdict =
      verdict_of(std::array{plan_contender_of(*saving.overlap), plan_contender_of(*saving.baseline)}, rule);
  saving.pays = !verdict.wins() ? Pays::close : verdict.front.front() == 0 ? Pays::yes : Pays::no;
  return saving;
}

PlanSavings plan_savings(std::span<const StepRow> rows, const VerdictRule& rule) {
  PlanSavings savings;
  SavingTally tally;
  std::vector<std::string> baselines;
  const std::vector<PlanRows> plans = plans_of(rows);
  std::optional<PlanSaving> decisive_saving;
  std::optional<double> best_saved;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::optional<PlanSaving> saving = plan_saving(plans[i], rule);
    if (!saving || !fits(*saving->overlap) || !fits(*saving->baseline)) {
      continue;
    }
    tally.add(saving->saved, saving->pays);
    // A sure saving outweighs a sure loss, and a sure loss outweighs a difference that is too close to call.
    const auto weight = [&](const PlanSaving& plan) {
      return std::pair(plan.pays == Pays::yes  ? 2
                       : plan.pays == Pays::no ? 1
                                               : 0,
                       plan.pays == Pays::close ? 0.0 : std::abs(plan.saved));
    };
    if (!decisive_saving || weight(*saving) > weight(*decisive_saving)) {
      decisive_saving = saving;
      savings.decisive = i;
    }
    if (!best_saved || saving->saved > *best_saved) {
      best_saved = saving->saved;
      savings.best = i;
    }
    if (const std::string& name = saving->baseline->text("strategy");
        std::ranges::find(baselines, name) == baselines.end()) {
      baselines.push_back(name);
    }
  }
  savings.baseline = fmt::format("{}", fmt::join(baselines, " or "));
  savings.count = tally.count();
  return savings;
}

namespace {

bool is_bound_row(const StepRow* row) { return is_bound(*row); }

}  // namespace

PlanVerdict::PlanVerdict(std::span<const StepRow* const> rows, const VerdictRule& rule) : rule_(rule) {
  std::ranges::copy_if(rows, std::back_inserter(feasible_), &StepRow::feasible);
  if (!std::ranges::all_of(feasible_, is_bound_row)) {
    std::erase_if(feasible_, is_bound_row);
  }
  if (const StepRow* const baseline = serial_of(rows)) {
    pays_ = implementations_in_words(rows, *baseline, rule);
  }
  std::vector<Contender> contenders;
  std::ranges::transform(feasible_, std::back_inserter(contenders),
                         [](const StepRow* row) { return plan_contender_of(*row); });
  if (!feasible_.empty()) {
    verdict_ = verdict_of(contenders, rule);
  }
}

bool PlanVerdict::in_front(const StepRow* row) const {
  return feasible_.size() > 1 &&
         std::ranges::any_of(verdict_.front, [&](std::size_t index) { return feasible_[index] == row; });
}

std::string PlanVerdict::sentence() const {
  if (feasible_.size() < 2 || !pays_.empty()) {
    return pays_;
  }
  if (verdict_.wins()) {
    const char* wins = is_framework(*feasible_[verdict_.order.front()]) ? "is already the fastest" : "wins";
    return fmt::format("{} {}{}: {:.1f}% less time than {}.", name(0), wins, sure_in_words(verdict_.probability),
                       100.0 * (1.0 - time(0) / time(1)), name(1));
  }
  std::vector<std::string> names;
  double slowest = 0.0;
  for (const std::size_t index : verdict_.front) {
    names.push_back(feasible_[index]->text("strategy"));
    slowest = std::max(slowest, feasible_[index]->number("time_ms"));
  }
  return fmt::format("Tie: {} are within {:.1f}%; a win needs {}.", names_in_words(names),
                     100.0 * (slowest / time(0) - 1.0), rule_in_words(rule_));
}

namespace {

/// Returns the sentence of best_plan() for rows of one scope; `plans` names them: "decode plans". The correlation
/// between errors of different plans is unknown, so the difference alone decides.
std::string best_of_scope(std::span<const StepRow> rows, const VerdictRule& rule, std::string_view plans) {
  std::vector<const StepRow*> fitting;
  std::vector<Contender> contenders;
  bool has_several_plans = false;
  for (const StepRow& row : rows) {
    has_several_plans = has_several_plans || plan_heading(row) != plan_heading(rows.front());
    if (row.feasible() && !is_bound(row) && fits(row)) {
      fitting.push_back(&row);
      contenders.push_back({1.0 / row.number("tokens_per_second_gpu")});
    }
  }
  if (!has_several_plans || fitting.empty()) {
    return {};
  }
  const Verdict verdict = verdict_of(contenders, rule);
  const StepRow& best = *fitting[verdict.front.front()];
  const PlanNames names(rows);
  constexpr std::size_t max_named = 3;
  std::vector<std::string> ties;
  for (std::size_t i = 1; i < verdict.front.size() && ties.size() < max_named; ++i) {
    ties.push_back(names.name_after(*fitting[verdict.front[i]], best));
  }
  if (verdict.front.size() - 1 > max_named) {
    ties.push_back(fmt::format("{} more", verdict.front.size() - 1 - max_named));
  }
  const std::string tied =
      ties.empty() ? "" : fmt::format("; within {:.3g}%: {}", 100.0 * rule.difference, fmt::join(ties, "; "));
  return fmt::format("Most tokens per second per GPU among {} that fit: {:.0f}, by {}{}", plans,
                     best.number("tokens_per_second_gpu"), names.first_name(best), tied);
}

}  // namespace

std::string best_plan(std::span<const StepRow> rows, const VerdictRule& rule) {
  std::vector<std::string_view> scopes;
  for (const StepRow& row : rows) {
    if (std::ranges::find(scopes, row.text("scope")) == scopes.end()) {
      scopes.emplace_back(row.text("scope"));
    }
  }
  if (scopes.size() < 2) {
    return best_of_scope(rows, rule, "plans");
  }
  std::vector<std::string> sentences;
  for (const std::string_view scope : scopes) {
    std::vector<StepRow> of_scope;
    std::ranges::copy_if(rows, std::back_inserter(of_scope),
                         [&](const StepRow& row) { return row.text("scope") == scope; });
    if (std::string best = best_of_scope(of_scope, rule, fmt::format("{} plans", scope)); !best.empty()) {
      sentences.push_back(std::move(best));
    }
  }
  return fmt::format("{}", fmt::join(sentences, ". "));
}

std::vector<PlanRows> plans_of(std::span<const StepRow> rows) {
  std::map<std::vector<std::pair<std::string_view, StepRow::Value>>, std::size_t> plan_indices;
  std::vector<PlanRows> plans;
  for (const StepRow& row : rows) {
    const auto [entry, is_new] = plan_indices.try_emplace(plan_key(row), plans.size());
    if (is_new) {
      plans.emplace_back();
    }
    plans[entry->second].push_back(&row);
  }
  return plans;
}

}  // namespace commfuse::reports
