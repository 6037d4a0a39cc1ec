// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/plan.h"

#include <utility>

namespace commfuse {

namespace {

RankPlan rank_plan(const Lowered& lowered, Rank rank) {
  const Program& program = *lowered.program;
  const std::size_t ops = program.ops.size();
  std::vector<std::vector<std::int32_t>> after(ops);
  RankPlan plan;
  plan.pending.assign(ops, -1);
  std::vector<std::int32_t> last_on_lane(program.lanes.size(), -1);
  for (std::size_t op = 0; op < ops; ++op) {
    const auto id = static_cast<std::int32_t>(op);
    if (!lowered.takes_part(rank, OpId{id})) {
      continue;
    }
    plan.pending[op] = 0;
    const auto depend = [&](std::int32_t earlier) {
      if (earlier >= 0 && plan.pending[static_cast<std::size_t>(earlier)] >= 0) {
        after[static_cast<std::size_t>(earlier)].push_back(id);
        ++plan.pending[op];
      }
    };
    for (const OpId wait : program.waits_of(program.ops[op])) {
      depend(static_cast<std::int32_t>(wait));
    }
    std::int32_t& lane = last_on_lane[program.ops[op].lane];
    depend(lane);
    lane = id;
  }
  for (const std::vector<std::int32_t>& list : after) {
    plan.first_successor.push_back(static_cast<std::uint32_t>(plan.successors.size()));
    plan.successors.insert(plan.successors.end(), list.begin(), list.end());
  }
  plan.first_successor.push_back(static_cast<std::uint32_t>(plan.successors.size()));
  return plan;
}

}  // namespace

Plan plan_of(Lowered lowered) {
  Plan plan;
  plan.lowered = std::move(lowered);
  const Rank distinct = plan.lowered.matching.uniform ? 1 : plan.lowered.program->mesh.ranks();
  for (Rank rank = 0; rank < distinct; ++rank) {
    plan.ranks.push_back(rank_plan(plan.lowered, rank));
  }
  return plan;
}

}  // namespace commfuse
