// SPDX-License-Identifier: Apache-2.0
// FuseAG in nested rings, for nodes joined by a slow network. Inside its node, a shard moves round the inner ring.
// Across nodes, it moves on the outer ring to the rank at the same position, and then round the inner ring of that
// node. A shard enters every node once. The diagram shows rank t of node n, with 2 nodes of 3 ranks; n-1.t is the shard
// of rank t of node n-1.
//
//            round 0               round 1
//   compute  n.t   n.t-1  n.t-2    n-1.t   n-1.t-1  n-1.t-2
//   comm     ->    ->              ->      ->                 inner ring: shards of this round
//   comm1    n.t ===========>                                 outer ring, under all GEMMs of the round
//
// With O nodes of I ranks, each rank runs N = O I GEMMs, O (I-1) inner and O-1 outer transfers. With the times c of a
// GEMM, p of an inner transfer and P of an outer one, the makespan is N c if p <= c and P <= I c. In general, outer
// shard j arrives at j P; inner transfers follow each other, and those of round j start no earlier than j P.
#include "model/strategies/fuse_ag.h"
#include "model/strategies/strategies.h"

namespace commfuse {

Done fuse_ag_nested(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t inner = builder.mesh().axes[static_cast<std::size_t>(stage.axis)].extent;
  const BufferId gathered = stage.scratch("gathered", stage.ranks - 1, stage.input);
  const auto rows_at = [&](std::int32_t step) {
    return step == 0 ? builder.whole(stage.input) : stage.rows_of(gathered, step - 1);
  };
  OpId crossed{};  // the outer transfer that is under way
  const auto cross = [&](std::int32_t round) {
    return builder.exchange({.lane = {LaneKind::comm, 1},
                             .axis = *stage.outer,
                             .send = {rows_at((round - 1) * inner)},
                             .receive = {rows_at(round * inner)},
                             .wire = options.dtype,
                             .waits = round == 1 ? stage.ready : std::vector<OpId>{}});
  };
  return multiply_arrivals(stage, 1, [&](std::int32_t step, Pieces& pieces) {
    if (step == stage.ranks) {
      return;
    }
    const std::int32_t round = step / inner;
    const std::int32_t inner_step = step % inner;
    pieces.push_back(
        {{rows_at(step)}, {stage.rows_of(stage.output, stage.shard({.inner = -inner_step, .outer = -round}))}, {}});
    if (inner_step == 0) {
      pieces.back().arrived = {{crossed, 1}};
      return;
    }
    std::vector<OpId> waits;  // the first transfer of a round forwards what the outer ring delivered
    if (inner_step == 1) {
      waits = round == 0 ? stage.ready : std::vector<OpId>{crossed};
      if ((round + 1) * inner < stage.ranks) {
        crossed = cross(round + 1);
      }
    }
    const OpId arrived = builder.exchange({.axis = stage.axis,
                                           .send = {rows_at(step - 1)},
                                           .receive = {rows_at(step)},
                                           .wire = options.dtype,
                                           .waits = waits});
    pieces.back().arrived = {{arrived, 0}};
  });
}

}  // namespace commfuse
