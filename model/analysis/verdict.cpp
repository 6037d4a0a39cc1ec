// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string_view>
#include <tuple>

#include "model/analysis/error_tail.h"
#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

std::optional<double> probability_faster(const Contender& fastest, const Contender& other) {
  if (fastest.time == other.time) {
    return 0.5;
  }
  // A probability above one half compares `other` with a result that is slower than `fastest`.
  if (other.win_probability && *other.win_probability <= 0.5) {
    return 1.0 - *other.win_probability;
  }
  if (!fastest.error || !other.error || fastest.time <= 0.0) {
    return std::nullopt;
  }
  const double error = std::sqrt(*fastest.error * *fastest.error + *other.error * *other.error);
  const double distance = math::log(other.time / fastest.time);
  return error > 0.0 ? share_below(distance / error) : 1.0;
}

Verdict verdict_of(std::span<const Contender> contenders, const VerdictRule& rule) {
  check(!contenders.empty(), "a verdict has at least one contender");
  Verdict verdict;
  verdict.order.resize(contenders.size());
  std::iota(verdict.order.begin(), verdict.order.end(), std::size_t{0});
  std::stable_sort(verdict.order.begin(), verdict.order.end(),
                   [&](std::size_t a, std::size_t b) { return contenders[a].time < contenders[b].time; });
  const Contender& fastest = contenders[verdict.order.front()];
  verdict.front.push_back(verdict.order.front());
  bool all_known = contenders.size() > 1;
  double least = 1.0;
  for (std::size_t i = 1; i < verdict.order.size(); ++i) {
    const Contender& other = contenders[verdict.order[i]];
    const std::optional<double> probability = probability_faster(fastest, other);
    all_known = all_known && probability;
    least = std::min(least, probability.value_or(1.0));
    const bool is_near = other.time <= fastest.time * (1.0 + rule.difference);
    if (is_near || (probability && *probability < rule.probability)) {
      verdict.front.push_back(verdict.order[i]);
    }
  }
  if (all_known) {
    verdict.probability = least;
  }
  return verdict;
}

TieBreak break_tie(std::span<const TiedPlan> plans) {
  check(!plans.empty(), "a tie has at least one plan");
  const auto key = [](const TiedPlan& plan) { return std::tuple(plan.gpus, plan.memory, plan.kinds); };
  const auto chosen = std::min_element(plans.begin(), plans.end(),
                                       [&](const TiedPlan& a, const TiedPlan& b) { return key(a) < key(b); });
  constexpr std::array<std::string_view, 4> reasons{"fewer GPUs", "less memory", "fewer kinds of parallelism",
                                                    "a better prediction"};
  const auto other = chosen == plans.begin() && plans.size() > 1 ? std::next(plans.begin()) : plans.begin();
  const std::size_t reason = other->gpus != chosen->gpus       ? 0
                             : other->memory != chosen->memory ? 1
                             : other->kinds != chosen->kinds   ? 2
                                                               : 3;
  return {static_cast<std::size_t>(chosen - plans.begin()), std::string{reasons.at(reason)}};
}

PlanChoice choose_plan(std::span<const PlanContender> plans, const VerdictRule& rule) {
  std::vector<Contender> contenders;
  for (const PlanContender& plan : plans) {
    contenders.push_back(plan.objective);
  }
  PlanChoice choice{.verdict = verdict_of(contenders, rule)};
  const double limit = contenders[choice.verdict.order.front()].time * (1.0 + rule.difference);
  std::vector<std::size_t> close;
  std::vector<TiedPlan> tied;
  for (const std::size_t index : choice.verdict.front) {
    const PlanContender& plan = plans[index];
    if (plan.objective.time <= limit) {
      close.push_back(index);
      tied.push_back(plan.plan);
    }
  }
  const TieBreak broken = break_tie(tied);
  choice.chosen = close[broken.chosen];
  if (choice.verdict.wins()) {
    return choice;
  }
  choice.reason = close.size() == 1 ? fmt::format("a lead of more than {:g}%", 100.0 * rule.difference) : broken.reason;
  if (close.size() > 1 && close.size() != choice.verdict.front.size()) {
    choice.reason += fmt::format(" among the {} within {:g}%", close.size(), 100.0 * rule.difference);
  }
  return choice;
}

std::string names_in_words(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

}  // namespace commfuse
