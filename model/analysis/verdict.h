// SPDX-License-Identifier: Apache-2.0
// Decides which of several results wins. Every table, map, figure and page uses verdict_of(); docs/metrics.md has the
// rule with an example.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/describe/setting.h"

namespace commfuse {

/// Conditions of a win. If the fastest result fails one of them against another result, both tie.
struct VerdictRule {
  double difference = 0.02;   ///< Every other result must take longer by more than this share of the winner's time.
  double probability = 0.80;  ///< Least probability that the winner is faster than each of the other results.
};

namespace run_settings {

using enum Use;

/// Settings that fill a rule.
inline constexpr std::array of_verdicts{SettingEntry<VerdictRule>{.key = "verdict.difference",
                                                                  .flag = "verdict-difference",
                                                                  .group = how,
                                                                  .doc = "Smaller differences in time count as ties",
                                                                  .preset = "2%",
                                                                  .example = "5%",
                                                                  .uses = {layer, step, prefill, decode, tune, plan},
                                                                  .least = 0,
                                                                  .most = 100,
                                                                  .of_point = false}
                                            .fills(share<&VerdictRule::difference>),
                                        SettingEntry<VerdictRule>{.key = "verdict.probability",
                                                                  .flag = "verdict-probability",
                                                                  .group = how,
                                                                  .doc = "Wins with a lower probability count as ties",
                                                                  .preset = "80%",
                                                                  .example = "95%",
                                                                  .uses = {layer, step, prefill, decode, tune, plan},
                                                                  .least = 50,
                                                                  .most = 100,
                                                                  .of_point = false}
                                            .fills(share<&VerdictRule::probability>)};

}  // namespace run_settings

/// One of the compared results.
struct Contender {
  double time = 0.0;              ///< Time or cost: less is better. All contenders of one verdict use the same unit.
  std::optional<double> error{};  ///< One standard error of the time, relative.
  /// Probability of being faster than the fastest other result of the same prediction run.
  std::optional<double> win_probability{};
};

/// Returns the probability that `fastest` is faster than `other`. Errors that both share cancel when both were
/// predicted together (`other.win_probability`); otherwise errors are assumed to be independent, which understates the
/// probability. Returns nullopt when an error is unknown or `fastest.time` is not above 0. Requires that `other` is not
/// faster.
std::optional<double> probability_faster(const Contender& fastest, const Contender& other);

struct Verdict {
  std::vector<std::size_t> order;  ///< Indices of all contenders, fastest first; equal times keep their order.
  std::vector<std::size_t> front;  ///< The fastest contender and all that tie with it; a single entry wins.
  /// Least probability that the fastest contender is faster than another; nullopt when a probability is unknown or
  /// there is only one contender.
  std::optional<double> probability{};

  [[nodiscard]] bool wins() const { return front.size() == 1; }
};

/// Returns the verdict. When a probability is unknown, the difference alone decides. Requires at least one contender.
Verdict verdict_of(std::span<const Contender> contenders, const VerdictRule& rule);

/// Criteria among plans that tie, in this order: fewer GPUs, then less memory, then fewer kinds of parallelism.
struct TiedPlan {
  std::int64_t gpus = 0;
  double memory = 0.0;  ///< Memory of the fullest GPU, in any unit.
  int kinds = 0;        ///< Number of kinds of parallelism.
};
struct TieBreak {
  std::size_t chosen = 0;
  /// Criterion that separates the chosen plan from the best prediction among the others, such as "less memory"; "a
  /// better prediction" when all else is equal.
  std::string reason;
};

/// Chooses among plans that tie, given in the order of their predictions. Requires at least one plan.
TieBreak break_tie(std::span<const TiedPlan> plans);

/// A plan that is compared with others.
struct PlanContender {
  Contender objective;
  TiedPlan plan;
};

struct PlanChoice {
  Verdict verdict;
  std::size_t chosen = 0;  ///< Index of the chosen plan.
  /// Why it is chosen, such as "less memory among the 4 within 2%", or "a lead of more than 2%" if the others tie only
  /// because the difference is uncertain; empty if one plan wins.
  std::string reason;
};

/// Chooses the plan that wins or, among plans that tie, the plan that the tie rule prefers. A plan that ties only
/// because the difference is uncertain is not chosen: the chosen objective exceeds the best by at most the difference
/// of `rule`. Requires at least one plan.
PlanChoice choose_plan(std::span<const PlanContender> plans, const VerdictRule& rule);

/// Returns "a", "a and b", or "a, b and c".
std::string names_in_words(std::span<const std::string> names);

}  // namespace commfuse
