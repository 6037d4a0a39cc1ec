// SPDX-License-Identifier: Apache-2.0
// The lowered program as the engine walks it: who waits for whom, worked out once a structure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/schedule/lower.h"

namespace commfuse {

/// Local dependencies of one rank's ops: waits, and the op before on the same lane.
struct RankPlan {
  std::vector<std::uint32_t> first_successor;  // by op, and one past the end
  std::vector<std::int32_t> successors;
  std::vector<std::int32_t> pending;  // by op: dependencies to begin with; -1 when the op is not on this rank

  [[nodiscard]] std::span<const std::int32_t> after(std::size_t op) const {
    return std::span(successors).subspan(first_successor[op], first_successor[op + 1] - first_successor[op]);
  }
};

struct Plan {
  Lowered lowered;
  std::vector<RankPlan> ranks;  // one for all where every rank runs every op

  [[nodiscard]] const RankPlan& of(Rank rank) const {
    return ranks.size() == 1 ? ranks.front() : ranks[static_cast<std::size_t>(rank)];
  }
};

Plan plan_of(Lowered lowered);

}  // namespace commfuse
