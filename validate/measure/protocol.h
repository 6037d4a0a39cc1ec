// SPDX-License-Identifier: Apache-2.0
// Measures schedules: after a warm-up they run alternately in random order, so that drift affects all alike.
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
  std::uint64_t seed = 1;  ///< Seed of the order.
  bool traced = false;     ///< One more iteration of every schedule, whose spans are kept.
  RunOptions run{};        ///< Settings of the work.
  /// No other process runs these schedules. Processes that run them together meet in every run, so one that went on
  /// after a run that only it gave up would meet the others in another run than theirs.
  bool alone = true;
};

/// A schedule ready to run, and the store of its times.
struct Variant {
  std::unique_ptr<Executor> executor;
  MeasuredRun run;
};

/// Returns the orders in which `count` schedules run in the rounds: a permutation of 0..count-1 for each, by Fisher and
/// Yates.
std::vector<std::vector<std::size_t>> turns(std::size_t count, int rounds, std::uint64_t seed);

/// Fills the makespans of all variants. A variant whose run gets stuck is marked as failed and runs no more; with other
/// processes, Stuck is thrown on.
/// `after_round`, if any, is called after every round.
void measure(std::span<Variant> variants, const MeasureOptions& options,
             const std::function<void(int done, int rounds)>& after_round = {});

/// Summary of the makespans of one schedule.
struct Summary {
  std::size_t samples = 0;
  Estimate median;  ///< With its 95% confidence interval, by order statistics.
  Duration p10{};
  Duration p90{};
};
/// Requires at least one makespan.
Summary summary_of(std::vector<Duration> makespans);

/// Measures 21 waits of 1 ms on this many threads at once: each sample is the time until the last of them returned.
NoiseFloor noise_floor(int threads);
/// Returns "1 ms took 1.012 ms on 8 threads at once (p90 1.030 ms)".
std::string in_words(const NoiseFloor& noise, int threads);

/// Describes the machine this runs on. Unknown properties are "unknown".
Environment this_environment();

}  // namespace commfuse::validate
