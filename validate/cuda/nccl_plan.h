// SPDX-License-Identifier: Apache-2.0
// Commands that one process issues for its rank, in the order of the program, which is equal on all ranks: so
// communicators of several lanes are used in the same order everywhere, as NCCL requires.
#pragma once

#include <cstdint>
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

/// Returns the colour of a rank: ranks of one colour make a communicator.
int color_of(const Program& program, const NcclMembers& members, Rank rank);

/// Returns sentences on what would keep NCCL waiting for ever; none: every message meets its other end. Two-sided
/// messages wait for each other even if the program pushes, and all communication of a device runs in the order of
/// issue, as it does if communicators may not run concurrently.
std::vector<std::string> nccl_findings(const Lowered& lowered);

}  // namespace commfuse::validate
