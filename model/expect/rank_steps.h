// SPDX-License-Identifier: Apache-2.0
// Names the rank that holds up the other ranks of a job, from the times of every rank in every step, and determines
// whether it computes, sends or launches slowly, or is late for its collectives.
//
// Each number of a rank in a step is compared with the median of all ranks in that step, so effects common to all ranks
// cancel. Ranks that never have the number are not compared. Steps in which one of the other ranks lacks it, or
// computes or sends nothing, are left out. A rank is judged by its median over the steps:
//
//   median_r = fault_r + e_r      e_r normal: differences between healthy ranks, and between steps of a rank
//
// and by how often its steps are late, compared with the steps of other ranks. Odds are as in evidence.h, over ranks,
// faults and their degrees. docs/decisions/0071 states the assumptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/expect/judge.h"

namespace commfuse {

/// Times of one rank in one step, in microseconds. Values that the file does not state are missing.
struct RankStep {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  double time_us = 0.0;                ///< From the start of the step to its end on this rank.
  std::optional<double> compute_us{};  ///< Time that its GPU computes.
  std::optional<double>
      communication_us{};           ///< Time in collectives and exchanges: transfers, and waiting for other ranks.
  std::optional<double> send_us{};  ///< Time of its own transfers, without waiting.
  std::optional<double> idle_us{};  ///< Time that its GPU is idle because launches are late.
};

enum class RankFault : std::uint8_t {
  slow_compute,
  slow_send,
  slow_host,
  jitter,
  late,  ///< Other ranks wait for it; the file does not show why.
  slow,  ///< Its steps take longer; the file does not show why.
};

struct RankFaultText {
  RankFault fault = RankFault::slow;
  std::string_view name;     ///< "slow_compute"
  std::string_view summary;  ///< A verb, and the likely cause: "computes slowly: ..."
  std::string_view next;     ///< A command that gives more information.
};
const RankFaultText& text_of(RankFault fault);

struct SuspectedRank {
  std::int64_t rank = 0;
  RankFault fault = RankFault::slow;
  double probability = 0.0;  ///< Probability that this rank has this fault.
  /// For slow_compute, slow_send and slow: its number divided by that of other ranks. For jitter: the share of its
  /// steps that are late. Otherwise: the time that it costs other ranks, as a share of the step.
  double degree = 1.0;
};

struct StepJudgement {
  Health health = Health::undecided;    ///< Healthy only with at least three ranks and three steps.
  double odds = 0.0;                    ///< See evidence.h.
  double healthy_probability = 1.0;     ///< See Judgement; the probability of a healthy job.
  Severity severity = Severity::none;   ///< From the time that the worst rank costs the step.
  double slowdown = 1.0;                ///< Slowdown of the step by the worst rank; 1 if healthy.
  std::vector<SuspectedRank> suspects;  ///< Bad ranks, the likeliest first; empty for a healthy job.
  std::size_t ranks = 0;
  std::size_t steps = 0;
  double step_us = 0.0;  ///< Median over all ranks and steps.
};

/// Returns the judgement of a job. Requires times above 0, other numbers of at least 0, each rank once per step, and 0
/// < false_alarms < 0.5.
StepJudgement judge_steps(std::span<const RankStep> measured, double false_alarms);

}  // namespace commfuse
