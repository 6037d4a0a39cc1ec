// SPDX-License-Identifier: Apache-2.0
// Plans for a rank whose lanes are streams. Events order the streams, whatever mechanism moves data between ranks.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "model/program/lower.h"

namespace commfuse::validate {

/// Builds a `Plan`, which has `steps` (of kinds record, wait and others), the number of its `events`, and the lanes
/// that it has `used`. A command waits for the events of its dependencies on other lanes; a command that another lane
/// waits for records an event afterwards.
template <class Plan>
class LanePlanner {
 protected:
  using Kind = typename decltype(Plan::steps)::value_type::Kind;

  /// `commands` must outlive the planner.
  explicit LanePlanner(std::span<const Command> commands)
      : commands_(commands), ended_(commands.size(), -1), awaited_(commands.size(), 0) {
    for (const Command& command : commands) {
      for (const std::int32_t wait : command.waits) {
        awaited_[static_cast<std::size_t>(wait)] |= commands[static_cast<std::size_t>(wait)].lane != command.lane;
      }
    }
  }

  /// Calls add(i), which appends the steps of command i, for every command in order, and joins the lanes at the end.
  template <class Add>
  Plan planned(const Add& add) {
    std::set<std::int32_t> used;
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      const std::int32_t lane = commands_[i].lane;
      await_dependencies(commands_[i]);
      add(i);
      if (awaited_[i] != 0) {
        ended_[i] = record(lane);
      }
      used.insert(lane);
    }
    plan_.used.assign(used.begin(), used.end());
    join();
    return std::move(plan_);
  }

  std::span<const Command> commands_;
  Plan plan_;

 private:
  void await_dependencies(const Command& command) {
    for (const std::int32_t wait : command.waits) {
      if (commands_[static_cast<std::size_t>(wait)].lane != command.lane) {
        plan_.steps.push_back(
            {.kind = Kind::wait, .lane = command.lane, .event = ended_[static_cast<std::size_t>(wait)]});
      }
    }
  }

  std::int32_t record(std::int32_t lane) {
    plan_.steps.push_back({.kind = Kind::record, .lane = lane, .event = plan_.events});
    return plan_.events++;
  }

  /// Between iterations a rank joins its own lanes.
  void join() {
    const std::int32_t first = plan_.events;
    for (const std::int32_t lane : plan_.used) {
      record(lane);
    }
    for (const std::int32_t lane : plan_.used) {
      for (std::size_t other = 0; other < plan_.used.size(); ++other) {
        if (plan_.used[other] != lane) {
          plan_.steps.push_back({.kind = Kind::wait, .lane = lane, .event = first + static_cast<std::int32_t>(other)});
        }
      }
    }
  }

  std::vector<std::int32_t> ended_;  // by command: its event; -1: none
  std::vector<char> awaited_;        // by command: true if another lane waits for it
};

}  // namespace commfuse::validate
