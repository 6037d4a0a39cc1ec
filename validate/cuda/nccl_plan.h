// SPDX-License-Identifier: Apache-2.0
// Commands that one process issues for its rank, in the order of the program. All ranks have this order, so
// communicators of several lanes are used in the same order everywhere, as NCCL requires.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/program/lower.h"

namespace commfuse::validate {

struct NcclStep {
  enum class Kind : std::uint8_t { record, wait, compute, exchange, collective };
  Kind kind = Kind::compute;
  std::int32_t lane = 0;  ///< Lane, which is also the stream.
  std::int32_t event = -1;
  std::int32_t command = -1;
  std::size_t communicator = 0;  ///< Index in NcclPlan::communicators.
};

/// A communicator of one lane: along one axis, or of all ranks.
struct NcclMembers {
  std::int32_t lane = 0;
  std::int32_t axis = -1;  ///< -1: all ranks
  friend auto operator<=>(const NcclMembers&, const NcclMembers&) = default;
};

/// The plan of one iteration.
struct NcclPlan {
  std::int32_t events = 0;
  std::vector<NcclMembers> communicators;  ///< Identical on all ranks.
  std::vector<NcclStep> steps;
  std::vector<std::int32_t> used;  ///< Lanes that have work.
};

/// `commands` must be those of one rank.
NcclPlan nccl_plan(const Program& program, std::span<const Command> commands);

/// Steps of an exchange by puts, in this order: the rank signals its source that its memory is ready, waits until its
/// target is ready, puts, and waits for the put of its source. Signals from one rank to another on one lane are counted
/// together. A wait therefore counts the intended signal and all earlier signals for which no wait was issued yet; a
/// count of 0 means that no wait is needed.
struct PutSignals {
  bool says_ready = false;  ///< True if the rank signals its source.
  int awaits_ready = 0;     ///< Number of signals from the target.
  int awaits_arrived = 0;   ///< Number of signals from the source.
  friend bool operator==(const PutSignals&, const PutSignals&) = default;
};

/// Returns true if nothing else uses the memory into which this command receives, so that data may arrive before the
/// rank reaches the command.
using HasRoom = std::function<bool(Rank rank, const Command& command)>;

/// Returns the signals of each command of a rank; commands that exchange nothing have none. Senders wait for their
/// receivers, as with two-sided messages, except for credits and for pushes with `has_room`. In one iteration, a rank
/// waits for every signal that another rank raises for it.
std::vector<PutSignals> put_signals(const Lowered& lowered, Rank rank, const HasRoom& has_room);

/// Returns the colour of a rank: ranks of the same colour form a communicator.
int color_of(const Program& program, const NcclMembers& members, Rank rank);

/// Returns a sentence for every collective that sums in fp8, which NCCL cannot do, and for every rank that would wait
/// forever; empty if there are none. Assumes that two-sided messages wait for each other even where the program pushes,
/// and that all communication of a device runs in the order of issue, as if communicators could not run concurrently.
std::vector<std::string> nccl_findings(const Lowered& lowered);

}  // namespace commfuse::validate
