// SPDX-License-Identifier: Apache-2.0
// FuseAG, direct form: every rank sends its own shard directly to all other ranks, the nearest following rank first.
//
//            step 0     step 1     step 2     step 3          (4 ranks, seen from rank r)
//   compute  shard r    shard r-1  shard r-2  shard r-3
//   comm     r -> r+1   r -> r+2   r -> r+3   idle
//
// A transfer depends only on the progress of its sender and its receiver. On N ranks, with the times c of a GEMM and p
// of a transfer, the makespan is c + (N-1) max(c, p), as in the ring form.
//
// A mesh has wires for several lanes. On L lanes, L shards start together; with 2 lanes:
//
//   comm     r -> r+1   r -> r+3
//   comm1    r -> r+2
//
// There are N GEMMs and N-1 transfers, in B = ceil((N-1)/L) rounds of up to L transfers. If p is the time of a transfer
// while all lanes are busy, transfer s ends at ceil(s/L) p, and the makespan is the largest of N c, p + (N-1) c and
// B p + (N-1-(B-1)L) c.
#include <algorithm>

#include "model/strategies/fuse_ag.h"
#include "model/strategies/strategies.h"

namespace commfuse {

Done fuse_ag_direct(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const BufferId gathered =
      stage.ranks > 1 ? stage.scratch("gathered", (stage.ranks - 1) * stage.cuts, stage.input) : stage.input;
  CommLanes lanes(options.lanes);
  builder.reserve_ops(std::int64_t{2} * stage.ranks * stage.cuts);
  const auto send = [&](std::int32_t distance) {
    Pieces pieces;
    const std::uint16_t lane = lanes.of(distance - 1);
    for (std::int32_t part = 0; part < stage.cuts; ++part) {
      const Region target = stage.rows_of(gathered, (distance - 1) * stage.cuts + part);
      const OpId arrived = builder.exchange({.lane = {LaneKind::comm, lane},
                                             .axis = stage.axis,
                                             .shift = distance,
                                             .send = {stage.rows_of(stage.input, part)},
                                             .receive = {target},
                                             .wire = options.dtype,
                                             .waits = lanes.waits_if_first(lane, stage)});
      pieces.push_back({{target}, {stage.rows_of(stage.output, stage.shard(-distance) + part)}, {{arrived, lane}}});
    }
    return pieces;
  };
  std::vector<Pieces> sent;  // by distance - 1
  return multiply_arrivals(stage, options.group, [&](std::int32_t step, Pieces& pieces) {
    // One transfer per lane is under way before a GEMM waits for the first transfer.
    const std::int32_t ahead = std::min(stage.ranks - 1, step + options.lanes - 1);
    while (static_cast<std::int32_t>(sent.size()) < ahead) {
      sent.push_back(send(static_cast<std::int32_t>(sent.size()) + 1));
    }
    if (step < stage.ranks) {
      pieces = sent[static_cast<std::size_t>(step) - 1];
    }
  });
}

}  // namespace commfuse
