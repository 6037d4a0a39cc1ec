// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/cpu_executor.h"

#include <algorithm>
#include <array>
#include <latch>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "model/check.h"
#include "validate/cpu/lane_run.h"
#include "validate/reference/interpreter.h"

namespace commfuse::validate {

namespace {

/// Returns the time at which the host has issued each command, counted from the release.
std::vector<std::vector<Duration>> issue_times(std::span<const std::vector<Command>> commands, const Costs& costs) {
  std::vector<std::vector<Duration>> times;
  for (const std::vector<Command>& rank_commands : commands) {
    Duration now{};
    times.emplace_back();
    for (const Command& command : rank_commands) {
      now += costs.issue[position(command.op)];
      times.back().push_back(now);
    }
  }
  return times;
}

/// Returns the lanes that have commands.
std::vector<LaneRun> lanes_of(RunShared& shared, std::span<const std::vector<Command>> commands) {
  std::vector<LaneRun> lanes;
  for (std::size_t rank = 0; rank < commands.size(); ++rank) {
    std::vector<std::vector<std::int32_t>> by_lane(shared.program.lanes.size());
    for (std::size_t i = 0; i < commands[rank].size(); ++i) {
      by_lane[commands[rank][i].lane].push_back(static_cast<std::int32_t>(i));
    }
    for (std::vector<std::int32_t>& lane : by_lane) {
      if (!lane.empty()) {
        lanes.emplace_back(shared, static_cast<Rank>(rank), std::move(lane), lanes.size() + 1);
      }
    }
  }
  return lanes;
}

void run_thread(LaneRun& lane, Board& board, std::latch& ready, std::latch& gate) {
  ask_for_sharp_timers();
  ready.count_down();
  gate.wait();
  try {
    lane.run();
  } catch (const GivenUp&) {  // the thread that gave up has recorded the reason
  } catch (...) {
    board.fail(std::current_exception());
  }
  board.leave(lane.last());
}

/// Runs all lanes simultaneously, and releases them at the same moment. Throws Stuck.
void execute(RunShared& shared, std::span<const std::vector<Command>> commands) {
  std::vector<LaneRun> lanes = lanes_of(shared, commands);
  std::latch ready(static_cast<std::ptrdiff_t>(lanes.size()));
  std::latch gate(1);
  std::vector<std::jthread> threads;
  threads.reserve(lanes.size());
  try {
    for (LaneRun& lane : lanes) {
      threads.emplace_back([&] { run_thread(lane, shared.board, ready, gate); });
    }
  } catch (const std::system_error& error) {
    // Otherwise the threads that started would wait for the others forever, and so would their destructors.
    shared.board.fail(std::current_exception());
    gate.count_down();
    throw std::runtime_error(too_few_threads({.started = threads.size(), .wanted = lanes.size()}, error.what()));
  }
  ready.wait();
  shared.release = WallClock::now();
  gate.count_down();
  const std::optional<std::string> reason = shared.board.await_all(shared.options.patience);
  threads.clear();
  if (shared.board.error()) {
    std::rethrow_exception(shared.board.error());
  }
  if (reason) {
    throw Stuck(*reason);
  }
}

Execution execution_of(const RunShared& shared, std::span<const std::vector<Command>> commands) {
  const double dilation = shared.options.dilation;
  const auto since_release = [&](WallTime when) { return shortened(when - shared.release, dilation); };
  Execution result;
  for (std::size_t rank = 0; rank < commands.size(); ++rank) {
    for (std::size_t i = 0; i < commands[rank].size(); ++i) {
      const Station at{static_cast<Rank>(rank), static_cast<std::int32_t>(i)};
      const Duration end = since_release(shared.board.ended(at));
      result.makespan = std::max(result.makespan, end);
      if (shared.run.traced) {
        result.timeline.push_back(
            {at.rank, commands[rank][i].op, Instant(since_release(shared.board.began(at))), Instant(end)});
      }
    }
  }
  return result;
}

}  // namespace

CpuExecutor::CpuExecutor(Lowered lowered, Sizes sizes, CpuOptions options)
    : lowered_(std::move(lowered)), sizes_(std::move(sizes)), options_(std::move(options)) {
  check(options_.dilation > 0.0, "the dilation of time is above 0");
  for (Rank rank = 0; rank < program().mesh.ranks(); ++rank) {
    commands_.push_back(commands_of(lowered_, rank));
  }
  if (options_.costs) {
    issued_ = issue_times(commands_, *options_.costs);
  } else {
    require_storable(program());
    memory_.emplace(program(), sizes_);
  }
}

void CpuExecutor::prepare(std::span<const Matrix<float>> tensors) {
  check(memory_.has_value(), "data needs memory, which an emulation does not have");
  fill(program(), sizes_, tensors, *memory_);
}

Execution CpuExecutor::run(const RunOptions& options) {
  Board board(program(), commands_, options.iterations);
  std::vector<Bucket> buckets(commands_.size());
  RunShared shared{.program = program(),
                   .sizes = sizes_,
                   .options = options_,
                   .run = options,
                   .issued = issued_,
                   .memory = memory_ ? &*memory_ : nullptr,
                   .board = board,
                   .buckets = buckets};
  execute(shared, commands_);
  return execution_of(shared, commands_);
}

Matrix<float> CpuExecutor::fetch(Rank rank, const Rectangle& area) const {
  check(memory_.has_value(), "data needs memory, which an emulation does not have");
  return memory_->read(rank, {&area, 1});
}

}  // namespace commfuse::validate
