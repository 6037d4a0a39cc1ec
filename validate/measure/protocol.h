// SPDX-License-Identifier: Apache-2.0
// How times are taken: warm-up, schedules in turns in random order, so that drift meets all alike.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/percentiles.h"
#include "model/record/run_record.h"
#include "validate/executor.h"

namespace commfuse::validate {

struct MeasureOptions {
  int warm_up = 3;
  int iterations = 25;
  std::uint64_t seed = 1;  ///< Of the order.
  bool traced = false;     ///< One more iteration of every schedule, whose spans are kept.
  RunOptions run{};        ///< What is computed.
};

/// A schedule ready to run, and where its times go.
struct Variant {
  std::unique_ptr<Executor> executor;
  MeasuredRun run;
};

/// In which order `count` schedules take their turns in each of the rounds: a permutation of 0..count-1 each, by
/// Fisher and Yates.
std::vector<std::vector<std::size_t>> turns(std::size_t count, int rounds, std::uint64_t seed);

/// Fills the makespans of all variants. A variant whose run gets stuck is marked as failed and takes no more turns.
/// `after_round`, if any, hears of every finished round.
void measure(std::span<Variant> variants, const MeasureOptions& options,
             const std::function<void(int done, int rounds)>& after_round = {});

/// What the makespans of one schedule say.
struct Summary {
  std::size_t samples = 0;
  Estimate median;  ///< With its 95 % confidence interval, by order statistics.
  Duration p10{};
  Duration p90{};
};
/// Requires at least one.
Summary summary_of(std::vector<Duration> makespans);

/// 21 waits of 1 ms on so many threads at once: each sample is how long it was until the last of them was back.
NoiseFloor noise_floor(int threads);
/// "1 ms took 1.012 ms on 8 threads at once (p90 1.030 ms)"
std::string in_words(const NoiseFloor& noise, int threads);

/// Of the machine this runs on. What cannot be found out is "unknown".
Environment this_environment();

}  // namespace commfuse::validate
