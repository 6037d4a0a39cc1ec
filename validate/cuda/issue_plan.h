// SPDX-License-Identifier: Apache-2.0
// The order in which one host thread issues the commands of several ranks to the streams of one device. A wait for an
// event only sees records issued before it, so each command is issued after the commands that it waits for. To make the
// plan, the program is executed as if every op ended when it is issued.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/program/lower.h"

namespace commfuse::validate {

/// A command, or none.
struct Spot {
  std::int32_t place = -1;    ///< position of its rank among the lists of commands; -1: none
  std::int32_t command = -1;  ///< position in that rank's list
  friend bool operator==(const Spot&, const Spot&) = default;
};

struct IssueStep {
  enum class Kind : std::uint8_t {
    record,    ///< records the event on the stream
    wait,      ///< makes the stream wait for the event
    compute,   ///< runs `at`: a GEMM, function or attention
    transfer,  ///< moves data from `at` to `to`; one of them may be none
    meet,      ///< runs the collective of `at` for all its members
    disturb,   ///< delays the stream at random
  };
  Kind kind = Kind::compute;
  std::int32_t stream = 0;  ///< position of the rank * lanes + lane
  std::int32_t event = -1;
  Spot at;
  Spot to;
};

/// The plan of one iteration.
struct IssuePlan {
  std::int32_t streams = 0;
  std::int32_t events = 0;
  std::vector<IssueStep> steps;
  std::vector<std::int32_t> used;  ///< Streams that have work.
};

struct PlanOptions {
  /// If set, there is one list of commands, for this rank. Its peers are assumed to do the same at every moment, so the
  /// rank receives what it sends. If empty, there is a list for each rank, in order of rank.
  std::optional<Rank> middle{};
  /// 0: lanes take turns. Any other number is the seed of a random order that streams allow, with random delays between
  /// commands.
  std::uint64_t order = 0;
};

/// Throws Stuck, which names ranks and ops, if commands wait for each other in a cycle.
IssuePlan issue_plan(const Program& program, std::span<const std::vector<Command>> commands,
                     const PlanOptions& options = {});

}  // namespace commfuse::validate
