// SPDX-License-Identifier: Apache-2.0
// Commands that one process issues for its rank, in the order of the program, which is equal on all ranks: so
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

/// A communicator: of one lane, along one axis, or of all ranks.
struct NcclMembers {
  std::int32_t lane = 0;
  std::int32_t axis = -1;  ///< -1: all ranks
  friend auto operator<=>(const NcclMembers&, const NcclMembers&) = default;
};

/// One iteration.
struct NcclPlan {
  std::int32_t events = 0;
  std::vector<NcclMembers> communicators;  ///< Equal on all ranks.
  std::vector<NcclStep> steps;
  std::vector<std::int32_t> used;  ///< Lanes that have work.
};

/// Takes the commands of one rank.
NcclPlan nccl_plan(const Program& program, std::span<const Command> commands);

/// Steps of an exchange by puts, in this order: it tells its source that there is room, waits until its target has
/// room, puts, and waits for what its source puts. Signals of one rank to another on one lane are counted together, so
/// a wait is for all that are raised before the one that is meant, and not waited for yet; 0: nothing is left to wait
/// for.
struct PutSignals {
  bool says_ready = false;  ///< To the source.
  int awaits_ready = 0;     ///< Signals of the target.
  int awaits_arrived = 0;   ///< Signals of the source.
  friend bool operator==(const PutSignals&, const PutSignals&) = default;
};

/// True if the receiving half of this command of a rank has its place to itself, so that data may come before the rank
/// is at it.
using HasRoom = std::function<bool(Rank rank, const Command& command)>;

/// For each command of a rank; those that exchange nothing have no signals. Senders wait for their receivers, as with
/// two-sided messages, but where the program pushes into a place that `has_room`, and for credits. An iteration waits
/// for as many signals of every rank as that rank raises.
std::vector<PutSignals> put_signals(const Lowered& lowered, Rank rank, const HasRoom& has_room);

/// The colour of a rank: ranks of one colour make a communicator.
int color_of(const Program& program, const NcclMembers& members, Rank rank);

/// Sentences on sums in fp8, which are given to NCCL as bytes, and on what would keep NCCL waiting for ever; none:
/// every message meets its other end. Two-sided messages wait for each other also where the program pushes, and all
/// that a device communicates goes in the order of issue, as it does where communicators are not let run beside each
/// other.
std::vector<std::string> nccl_findings(const Lowered& lowered);

}  // namespace commfuse::validate
