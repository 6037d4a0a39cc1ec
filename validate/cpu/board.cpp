// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/check.h"
#include "validate/standing.h"

namespace commfuse::validate {

Board::Board(const Program& program, std::span<const std::vector<Command>> commands, int iterations)
    : program_(program),
      commands_(commands),
      command_of_op_(commands.size() * program.ops.size(), -1),
      ended_on_(commands.size(), 0),
      lanes_(commands.size() * program.lanes.size()) {
  check(iterations > 0, "a run has an iteration");
  std::size_t states = 0;
  std::vector<char> used(lanes_.size(), 0);
  for (std::size_t rank = 0; rank < commands.size(); ++rank) {
    first_.push_back(states);
    states += commands[rank].size();
    for (std::size_t i = 0; i < commands[rank].size(); ++i) {
      command_of_op_[rank * program.ops.size() + position(commands[rank][i].op)] = static_cast<std::int32_t>(i);
      const std::size_t lane = rank * program.lanes.size() + commands[rank][i].lane;
      if (used[lane] == 0) {
        used[lane] = 1;
        lanes_[lane].wait = Wait::none;
        lanes_[lane].at = {static_cast<Rank>(rank), static_cast<std::int32_t>(i)};
      }
    }
  }
  states_.resize(states);
  present_ = static_cast<std::size_t>(std::ranges::count(used, 1));
  running_ = present_;
}

bool Board::can_continue(const Lane& lane) const {
  const State& waiting = state(lane.at);
  switch (lane.wait) {
    case Wait::none: return true;
    case Wait::left: return false;
    case Wait::turn: {
      const auto rank = static_cast<std::size_t>(lane.at.rank);
      const auto earlier = static_cast<std::int64_t>(commands_[rank].size()) * lane.iteration;
      return ended_on_[rank] >= earlier && std::ranges::all_of(command(lane.at).waits, [&](std::int32_t wait) {
               return state({lane.at.rank, wait}).ended > lane.iteration;
             });
    }
    case Wait::posted: return state(lane.other).posted > lane.iteration;
    case Wait::shown: return state(lane.other).shown > lane.iteration;
    case Wait::delivered: return waiting.delivered > lane.iteration;
    case Wait::end: return waiting.ended > lane.iteration;
  }
  return false;
}

// Called with the mutex held, like all private members that change state except await().
void Board::wake_ready_lanes() {
  for (Lane& lane : lanes_) {
    if (lane.wait != Wait::none && lane.wait != Wait::left && can_continue(lane)) {
      lane.wait = Wait::none;
      ++running_;
      lane.moved.notify_one();
    }
  }
}

void Board::await(Wait wait, Station at, Station other, int iteration) {
  std::unique_lock lock(mutex_);
  Lane& lane = lane_of(at);
  lane.at = at;
  lane.other = other;
  lane.iteration = iteration;
  lane.wait = wait;
  if (can_continue(lane)) {
    lane.wait = Wait::none;
  } else {
    --running_;
    require_progress();
  }
  lane.moved.wait(lock, [&] { return lane.wait == Wait::none || given_up(); });
  if (given_up()) {
    throw GivenUp{};
  }
}

void Board::await_turn(Station at, int iteration) { await(Wait::turn, at, at, iteration); }

bool Board::post(Station at, int iteration, WallTime when) {
  const std::lock_guard lock(mutex_);
  State& current = state(at);
  current.ready = when;
  current.begun = when;
  current.half_begun = false;
  ++current.posted;
  const std::vector<Rank>& group = command(at).group;
  const bool last = !group.empty() && std::ranges::all_of(group, [&](Rank member) {
    return state(partner(member, command(at).op)).posted > iteration;
  });
  wake_ready_lanes();
  return last;
}

WallTime Board::await_posted(Station at, Station peer, int iteration) {
  await(Wait::posted, at, peer, iteration);
  const std::lock_guard lock(mutex_);
  return std::max(state(at).ready, state(peer).ready);
}

void Board::show(Station at) {
  const std::lock_guard lock(mutex_);
  ++state(at).shown;
  wake_ready_lanes();
}

void Board::await_shown(Station at, Station sender, int iteration) { await(Wait::shown, at, sender, iteration); }

void Board::deliver(Station mover, Station to, WallTime begun) {
  const std::lock_guard lock(mutex_);
  for (State* half : {&state(mover), &state(to)}) {
    half->begun = half->half_begun ? std::min(half->begun, begun) : begun;
    half->half_begun = true;
  }
  ++state(to).delivered;
  wake_ready_lanes();
}

void Board::await_delivered(Station at, int iteration) { await(Wait::delivered, at, at, iteration); }

void Board::await_end(Station at, int iteration) { await(Wait::end, at, at, iteration); }

void Board::record_end(Station at, std::optional<WallTime> begun, WallTime when) {
  State& current = state(at);
  current.begun = begun.value_or(current.begun);
  current.over = when;
  ++current.ended;
  ++ended_on_[static_cast<std::size_t>(at.rank)];
  ++ends_;
}

void Board::end(Station at, std::optional<WallTime> begun, WallTime when) {
  const std::lock_guard lock(mutex_);
  record_end(at, begun, when);
  wake_ready_lanes();
}

void Board::end_all(std::span<const Station> members, WallTime begun, WallTime when) {
  const std::lock_guard lock(mutex_);
  for (const Station member : members) {
    record_end(member, begun, when);
  }
  wake_ready_lanes();
}

WallTime Board::last_posted(std::span<const Station> members) {
  const std::lock_guard lock(mutex_);
  WallTime last{};
  for (const Station member : members) {
    last = std::max(last, state(member).ready);
  }
  return last;
}

void Board::leave(Station last) {
  const std::lock_guard lock(mutex_);
  lane_of(last).wait = Wait::left;
  --running_;
  --present_;
  if (!given_up()) {
    require_progress();
  }
  left_.notify_all();
}

void Board::require_progress() {
  if (running_ == 0 && present_ > 0 && !given_up()) {
    give_up(fmt::format("no op can run: {}", standing()));
  }
}

void Board::give_up(std::string reason) {
  reason_ = std::move(reason);
  given_up_.store(true, std::memory_order_relaxed);
  for (Lane& lane : lanes_) {
    lane.moved.notify_one();
  }
}

void Board::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!given_up()) {
    error_ = std::move(error);
    give_up("a lane failed");
  }
}

std::optional<std::string> Board::await_all(std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  std::int64_t ends_at_last_check = -1;
  while (present_ > 0 && !given_up() && ends_at_last_check != ends_) {
    ends_at_last_check = ends_;
    left_.wait_for(lock, patience, [&] { return present_ == 0 || given_up(); });
  }
  if (present_ > 0 && !given_up()) {
    give_up(
        fmt::format("no op has completed for {:g} s: {}", std::chrono::duration<double>(patience).count(), standing()));
  }
  left_.wait(lock, [&] { return present_ == 0; });
  return reason_;
}

std::string Board::standing() const {
  std::vector<std::string> sentences;
  for (const Lane& lane : lanes_) {
    const std::string op = lane.wait == Wait::left ? "" : op_in_words(program_, command(lane.at).op);
    const auto say = [&](const std::string& where) {
      sentences.push_back(fmt::format("rank {} {}", lane.at.rank, where));
    };
    switch (lane.wait) {
      case Wait::left: break;
      case Wait::none: say(fmt::format("is busy with {}", op)); break;
      case Wait::turn: say(fmt::format("waits before {}", op)); break;
      case Wait::posted: say(fmt::format("waits at {} for rank {}", op, lane.other.rank)); break;
      case Wait::shown:
      case Wait::delivered: say(fmt::format("waits at {} for rank {}", op, command(lane.at).source)); break;
      case Wait::end: say(fmt::format("waits at {} for its group", op)); break;
    }
  }
  return standing_in_words(sentences);
}

}  // namespace commfuse::validate
