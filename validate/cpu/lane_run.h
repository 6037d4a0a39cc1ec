// SPDX-License-Identifier: Apache-2.0
// Runs the thread of one lane: its commands, one after another, iteration after iteration.
#pragma once

#include <span>
#include <vector>

#include "validate/chaos.h"
#include "validate/cpu/board.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/reference/kernels.h"

namespace commfuse::validate {

/// State that the threads of one run share.
struct RunShared {
  const Program& program;
  const Sizes& sizes;
  const CpuOptions& options;
  const RunOptions& run;
  std::span<const std::vector<Duration>> issued;
  Memory* memory = nullptr;  // null: emulation
  Board& board;
  std::vector<Bucket>& buckets;  // by rank
  WallTime release{};
};

class LaneRun {
 public:
  LaneRun(RunShared& shared, Rank rank, std::vector<std::int32_t> commands, std::size_t lane)
      : shared_(shared), rank_(rank), commands_(std::move(commands)), chaos_(shared.run.order, lane) {}

  /// Runs all commands; throws GivenUp.
  void run();
  [[nodiscard]] Station last() const { return {rank_, commands_.back()}; }

 private:
  void run_command(Station at, int iteration);
  void compute(Station at, WallTime posted);
  void exchange(Station at, int iteration, WallTime posted);
  void send(Station at, int iteration, WallTime posted);
  void receive(Station at, int iteration);
  /// Moves the data; `mover` is the side, sender or receiver, that this lane runs.
  void move(Station mover, Station from, Station to, WallTime begun);
  void meet(Station at);

  [[nodiscard]] Place place(Station at) const { return {at.rank, &shared_.board.command(at)}; }
  /// Returns the earliest time at which the op that began at `begun` may end, by its price.
  [[nodiscard]] WallTime priced_end(Station at, WallTime begun) const;
  void sleep_until(WallTime when) const;

  RunShared& shared_;
  Rank rank_;
  std::vector<std::int32_t> commands_;
  Chaos chaos_;
};

}  // namespace commfuse::validate
