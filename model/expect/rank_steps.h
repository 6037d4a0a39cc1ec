// SPDX-License-Identifier: Apache-2.0
// Names the rank that holds the others of a job up, from the times of every rank in every step, and tells whether it
// computes, sends, launches or comes to its collectives slowly.
//
// A number of a rank in a step is held against the median of all ranks in that step, so what slows all ranks alike
// cancels. A rank is judged by its median over the steps:
//
//   median_r = fault_r + e_r      e_r normal, by what healthy ranks differ by and by what steps of a rank differ by
//
// and how often one of its steps is late, against how often those of the others are. Odds are as in evidence.h, over
// ranks, faults and their degrees. docs/decisions/0071 says what is assumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/expect/judge.h"

namespace commfuse {

/// Microseconds of one rank in one step. What a file does not say is missing.
struct RankStep {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  double time_us = 0.0;                ///< From the step's begin to its end on this rank.
  std::optional<double> compute_us{};  ///< Its GPU computes.
  std::optional<double>
      communication_us{};           ///< It is inside collectives and exchanges: transfers, and waiting for others.
  std::optional<double> send_us{};  ///< Its own transfers, without waiting.
  std::optional<double> idle_us{};  ///< Its GPU has nothing to do: launches are late.
};

enum class RankFault : std::uint8_t {
  slow_compute,
  slow_send,
  slow_host,
  jitter,
  late,  ///< The others wait for it; the file does not say why.
  slow,  ///< Its steps take longer; the file does not say why.
};

struct RankFaultText {
  RankFault fault = RankFault::slow;
  std::string_view name;     ///< "slow_compute"
  std::string_view summary;  ///< A verb and what it points to: "computes slowly: ..."
  std::string_view next;     ///< The command that tells more.
};
const RankFaultText& text_of(RankFault fault);

struct SuspectedRank {
  std::int64_t rank = 0;
  RankFault fault = RankFault::slow;
  double probability = 0.0;  ///< Probability that this rank has this fault.
  /// Its number over the others' where it computes, sends or is slow; else what it costs the others, as a share of the
  /// step; of jitter the share of its steps that are late.
  double degree = 1.0;
};

struct StepJudgement {
  Health health = Health::undecided;    ///< Healthy only of three ranks and three steps or more.
  double odds = 0.0;                    ///< evidence.h
  double healthy_probability = 1.0;     ///< See Judgement; this one is of a job.
  Severity severity = Severity::none;   ///< By what the worst rank costs the step.
  double slowdown = 1.0;                ///< Slowdown of the step by the worst rank; 1 where healthy.
  std::vector<SuspectedRank> suspects;  ///< Bad ranks, the likeliest first; of a healthy job none.
  std::size_t ranks = 0;
  std::size_t steps = 0;
  double step_us = 0.0;  ///< Median of all ranks and steps.
};

/// Requires times above 0, other numbers of 0 and more, each rank once a step, and 0 < false_alarms < 0.5.
StepJudgement judge_steps(std::span<const RankStep> measured, double false_alarms);

}  // namespace commfuse
