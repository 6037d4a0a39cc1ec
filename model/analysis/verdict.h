// SPDX-License-Identifier: Apache-2.0
// Which of several results wins. Every table, map, figure and page asks this one function; docs/metrics.md has the rule
// with an example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace commfuse {

/// A win needs both. What misses one of them is a tie.
struct VerdictRule {
  double difference = 0.02;   ///< Share of the winner's time by which every other takes longer: more than this.
  double probability = 0.80;  ///< That the winner is faster than every other: at least this.
};

/// One of the results that are compared.
struct Contender {
  double time = 0.0;                        ///< Or cost: less is better. All of one verdict have the same unit.
  std::optional<double> error{};            ///< One standard error of the time, relative.
  std::optional<double> win_probability{};  ///< Against the fastest of those that were predicted with it.
};

/// How likely `fastest` is faster than `other`. Errors that both share cancel where both were predicted together
/// (`other.win_probability`); else they are taken as independent, which understates the probability. Nothing where an
/// error is unknown. Requires that `other` is not the faster one.
std::optional<double> probability_faster(const Contender& fastest, const Contender& other);

struct Verdict {
  std::vector<std::size_t> order;  ///< Places of all contenders, fastest first, the first named on equal times.
  std::vector<std::size_t> front;  ///< Of these the fastest and those that tie with it. One alone wins.
  /// The least probability that the fastest is faster than another one; nothing where one is unknown, or for one alone.
  std::optional<double> probability{};

  [[nodiscard]] bool wins() const { return front.size() == 1; }
};

/// Where a probability is unknown the difference alone decides. Requires at least one contender.
Verdict verdict_of(std::span<const Contender> contenders, const VerdictRule& rule);

/// What decides among plans that tie, in this order: fewer GPUs, then less memory, then fewer kinds of parallelism.
struct TiedPlan {
  std::int64_t gpus = 0;
  double memory = 0.0;  ///< Of the fullest GPU, in any unit.
  int kinds = 0;        ///< Of parallelism.
};
struct TieBreak {
  std::size_t chosen = 0;
  std::string rule;  ///< "less memory"; the last one that was needed. "a better prediction" where all else is equal.
};

/// Chooses among plans that tie, which are given in the order of their predictions. Requires at least one plan.
TieBreak break_tie(std::span<const TiedPlan> plans);

/// "a", "a and b", "a, b and c".
std::string names_in_words(std::span<const std::string> names);

}  // namespace commfuse
