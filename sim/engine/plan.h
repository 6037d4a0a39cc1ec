// SPDX-License-Identifier: Apache-2.0
// The lowered program as the engine walks it: each lane's ops in order and what each waits for, worked out once a
// structure. Ranks that take part in the same ops share one plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"

namespace commfuse {

/// A run of a pool of the plan.
struct PlannedRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// One op of a lane, with what its shape says of whom it meets.
struct PlannedOp {
  OpId op{};
  OpKind kind = OpKind::gemm;
  Purpose purpose = Purpose::essential;
  bool sends = false;                        // exchange
  bool receives = false;                     // exchange
  Protocol protocol = Protocol::rendezvous;  // exchange
  std::int32_t axis = 0;                     // exchange, collective
  std::int32_t shift = 0;                    // exchange
  PlannedRun waits;                          // of RankPlan::waits
  PlannedRun watchers;                       // of RankPlan::watchers
};

/// Ended as soon as the lane's head stands behind `place`.
struct PlannedWait {
  std::uint32_t lane = 0;
  std::uint32_t place = 0;
};

/// Places count all ops of all lanes, one lane after another.
struct RankPlan {
  std::vector<PlannedOp> ops;           // by place
  std::vector<std::uint32_t> first;     // by lane, and one past the end: the place of its first op
  std::vector<PlannedWait> waits;       // pool: of other lanes, the last op of each lane
  std::vector<std::uint32_t> watchers;  // pool: lanes on which an op waits for this one

  [[nodiscard]] std::span<const PlannedWait> waits_of(const PlannedOp& op) const {
    return std::span(waits).subspan(op.waits.first, op.waits.count);
  }
  [[nodiscard]] std::span<const std::uint32_t> watchers_of(const PlannedOp& op) const {
    return std::span(watchers).subspan(op.watchers.first, op.watchers.count);
  }
};

struct Plan {
  Lowered lowered;
  std::vector<RankPlan> kinds;              // distinct ones; a single one where every rank runs every op
  std::vector<std::uint32_t> kind_of_rank;  // by rank
  std::vector<Coordinates> here;            // by rank
};

Plan plan_of(Lowered lowered);

}  // namespace commfuse
