// SPDX-License-Identifier: Apache-2.0
// Measures schedules: after a warm-up they run alternately in random order, so that drift affects all of them equally.
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
  bool traced = false;     ///< Runs one more iteration of every schedule, and keeps its spans.
  RunOptions run{};        ///< Options of every run.
  /// True if no other process runs these schedules. Processes that run them together meet in every run; if one of them
  /// gave up a run alone and continued, it would meet the others in a different run.
  bool alone = true;
};

/// A schedule that is ready to run, and its recorded times.
struct Variant {
  std::unique_ptr<Executor> executor;
  MeasuredRun run;
};

/// Returns the orders in which `count` schedules run in the rounds: for each round a permutation of 0..count-1 (Fisher
/// and Yates).
std::vector<std::vector<std::size_t>> turns(std::size_t count, int rounds, std::uint64_t seed);

/// Fills the makespans of all variants and, if `options.traced`, their spans. A variant whose run gets stuck is marked
/// as failed and does not run again; if other processes take part, Stuck is rethrown instead. `after_round`, if set, is
/// called after every round.
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

/// Measures 21 waits of 1 ms on `threads` threads simultaneously: each sample is the time until the last of them
/// returned.
NoiseFloor noise_floor(int threads);
/// Returns "1 ms took 1.012 ms on 8 threads simultaneously (p90 1.030 ms)".
std::string in_words(const NoiseFloor& noise);
/// Returns "in real time", or "32 times slower; times are divided by that factor".
std::string pace_in_words(double dilation);

/// Describes the machine this runs on. An unknown processor or system is "unknown".
Environment this_environment();

}  // namespace commfuse::validate
