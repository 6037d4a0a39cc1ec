// SPDX-License-Identifier: Apache-2.0
// The state of all lanes of all ranks. Lanes are threads; they report their progress to the board and wait on it for
// each other. When all of them wait, none can ever continue: the board detects that immediately, without a timeout.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/program/lower.h"
#include "model/program/recorder.h"
#include "validate/cpu/wall_clock.h"

namespace commfuse::validate {

/// A command on a rank, by its position in the rank's list.
struct Station {
  Rank rank = 0;
  std::int32_t command = 0;
};

/// Thrown to end a lane's thread early, because the run was given up.
struct GivenUp {};

class Board {
 public:
  /// `commands`, by rank, must outlive the board, which counts all iterations of one run.
  Board(const Program& program, std::span<const std::vector<Command>> commands, int iterations);

  [[nodiscard]] const Command& command(Station at) const {
    return commands_[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.command)];
  }
  [[nodiscard]] Station partner(Rank rank, OpId op) const {
    return {rank, command_of_op_[static_cast<std::size_t>(rank) * program_.ops.size() + position(op)]};
  }

  // A lane calls the following functions for its command in an iteration, in this order. Those that wait throw GivenUp.

  /// Waits until all the rank's ops of earlier iterations, and all dependencies of the command, have ended.
  void await_turn(Station at, int iteration);
  /// Records that the command became ready at `when`. Returns true if it is the last of its collective's members.
  bool post(Station at, int iteration, WallTime when);
  /// Waits until the command `peer` is ready, and returns the time at which both commands were ready.
  WallTime await_posted(Station at, Station peer, int iteration);
  /// Records that the receiver may fetch the data of `at`, the send half of a pull.
  void show(Station at);
  void await_shown(Station at, Station sender, int iteration);
  /// Records that `mover`, which is `to` or its sender, has moved the data to `to`, and that the move began at `begun`.
  void deliver(Station mover, Station to, WallTime begun);
  void await_delivered(Station at, int iteration);
  /// Waits until another member has ended the collective of this member.
  void await_end(Station at, int iteration);
  /// Records that the command ended. `begun` is nothing for an exchange, because its halves have recorded their start.
  void end(Station at, std::optional<WallTime> begun, WallTime when);
  /// Records that a collective ended, on all its members simultaneously.
  void end_all(std::span<const Station> members, WallTime begun, WallTime when);
  /// Records that the lane has finished.
  void leave(Station last);
  /// Returns the time at which the last member of a collective was posted.
  WallTime last_posted(std::span<const Station> members);

  // The following are called from outside the lanes.

  /// Waits until all lanes have left; gives up when no op has ended for `patience`. Returns the reason why the run
  /// ended early, or nothing if it finished.
  std::optional<std::string> await_all(std::chrono::nanoseconds patience);
  /// Records that a lane failed; all other lanes give up.
  void fail(std::exception_ptr error);
  [[nodiscard]] std::exception_ptr error() const { return error_; }
  [[nodiscard]] bool given_up() const { return given_up_.load(std::memory_order_relaxed); }

  /// began() and ended() return times of the last iteration, and are valid once all lanes have left.
  [[nodiscard]] WallTime began(Station at) const { return state(at).begun; }
  [[nodiscard]] WallTime ended(Station at) const { return state(at).over; }

 private:
  enum class Wait : std::uint8_t { none, turn, posted, shown, delivered, end, left };
  /// Counts of iterations, and times of the last one.
  struct State {
    int posted = 0, shown = 0, delivered = 0, ended = 0;
    WallTime ready{};
    WallTime begun{};  // an exchange: the start of its first half
    WallTime over{};
    bool half_begun = false;
  };
  struct Lane {
    std::condition_variable moved;
    Wait wait = Wait::left;
    Station at;
    Station other;
    int iteration = 0;
  };

  [[nodiscard]] State& state(Station at) { return states_[first_[static_cast<std::size_t>(at.rank)] + index(at)]; }
  [[nodiscard]] const State& state(Station at) const {
    return states_[first_[static_cast<std::size_t>(at.rank)] + index(at)];
  }
  static std::size_t index(Station at) { return static_cast<std::size_t>(at.command); }
  [[nodiscard]] Lane& lane_of(Station at) {
    return lanes_[static_cast<std::size_t>(at.rank) * program_.lanes.size() + command(at).lane];
  }
  void await(Wait wait, Station at, Station other, int iteration);
  [[nodiscard]] bool can_continue(const Lane& lane) const;
  void wake_ready_lanes();
  void record_end(Station at, std::optional<WallTime> begun, WallTime when);
  void give_up(std::string reason);
  void require_progress();
  [[nodiscard]] std::string standing() const;

  const Program& program_;
  std::span<const std::vector<Command>> commands_;
  std::vector<std::int32_t> command_of_op_;  // by rank and op: index of its command
  std::vector<std::size_t> first_;           // by rank: index of its first state

  mutable std::mutex mutex_;
  std::vector<State> states_;
  std::vector<std::int64_t> ended_on_;  // by rank: ended ops, in all iterations
  std::vector<Lane> lanes_;             // by rank and lane
  std::size_t running_ = 0;             // lanes that neither wait nor have left
  std::size_t present_ = 0;             // lanes that have not left
  std::int64_t ends_ = 0;
  std::condition_variable left_;
  std::optional<std::string> reason_;
  std::exception_ptr error_;
  std::atomic<bool> given_up_{false};
};

}  // namespace commfuse::validate
