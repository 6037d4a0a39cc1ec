// SPDX-License-Identifier: Apache-2.0
// The lowered program in the form that the engine executes: each lane's ops in order and their dependencies, computed
// once per structure. Ranks that take part in the same ops share one plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/lower.h"

namespace commfuse {

/// A range in one of the pools of a RankPlan.
struct PlannedRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// One op of a lane, with the properties of its shape that determine its partners.
struct PlannedOp {
  OpId op{};
  OpKind kind = OpKind::gemm;
  Purpose purpose = Purpose::essential;
  bool sends = false;                        // exchanges only
  bool receives = false;                     // exchanges only
  Protocol protocol = Protocol::rendezvous;  // exchanges only
  std::int32_t axis = 0;                     // exchanges and collectives
  std::int32_t shift = 0;                    // exchanges only
  PlannedRun waits;                          // range of RankPlan::waits
  PlannedRun watchers;                       // range of RankPlan::watchers
};

/// A dependency on the op at `place` of a lane; the op has ended once the lane's head is past that place.
struct PlannedWait {
  std::uint32_t lane = 0;
  std::uint32_t place = 0;
};

/// The ops of one rank. Places number the ops of all lanes, one lane after another.
struct RankPlan {
  std::vector<PlannedOp> ops;           // by place
  std::vector<std::uint32_t> first;     // by lane, and one past the end: the place of the lane's first op
  std::vector<PlannedWait> waits;       // pool: for each of the other lanes, the last awaited op
  std::vector<std::uint32_t> watchers;  // pool: lanes on which an op waits for this op

  [[nodiscard]] std::span<const PlannedWait> waits_of(const PlannedOp& op) const {
    return std::span(waits).subspan(op.waits.first, op.waits.count);
  }
  [[nodiscard]] std::span<const std::uint32_t> watchers_of(const PlannedOp& op) const {
    return std::span(watchers).subspan(op.watchers.first, op.watchers.count);
  }
};

struct Plan {
  Lowered lowered;
  std::vector<RankPlan> kinds;              // distinct plans; a single plan if every rank runs every op
  std::vector<std::uint32_t> kind_of_rank;  // by rank
  std::vector<Coordinates> coordinates;     // by rank
};

Plan plan_of(Lowered lowered);

}  // namespace commfuse
