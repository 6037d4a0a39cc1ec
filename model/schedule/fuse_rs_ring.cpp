// SPDX-License-Identifier: Apache-2.0
// FuseRS, ring-accumulate form (CommFuse Alg 2, Fig 7): running sums travel round the ring, each rank adds its
// partial product to the sum that has just come in; the own shard comes last.
//
//            step 0     step 1       step 2       step 3          (4 ranks, seen from rank r)
//   compute  p[r-1]     p[r-2] +     p[r-3] +     p[r] +          + adds what came in during the step
//   comm     idle       m[r-1] ->    m[r-2] ->    m[r-3] ->
//
// Product c, transfer p, add a: makespan c + (N-1) (max(c, p) + a) with the add on the compute lane; with the add on
// its own lane E(0) = c, E(i) = max((i+1) c, E(i-1) + p) + a, makespan E(N-1) (method.md 1.6).
#include "model/schedule/strategies.h"

namespace commfuse {

Done fuse_rs_ring(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const bool own_lane = options.add_lane == LaneKind::aux;
  const auto product = [&](std::int32_t step, const Region& out, const std::vector<OpId>& waits) {
    const Index shard = along(builder.mesh(), stage.axis, -1 - step);
    return stage.multiply(
        {.a = {stage.rows_of(stage.input, shard)}, .b = {builder.whole(stage.weight)}, .out = {out}, .waits = waits});
  };
  if (ranks == 1) {
    return {product(0, builder.whole(stage.output), stage.ready)};
  }
  // Two slots each are enough: a step sends from one and receives into the other.
  const BufferId sum = stage.scratch("sum", 2, stage.output);
  const BufferId partial = stage.scratch("partial", 2, stage.output);
  const auto slot = [&](BufferId buffer, std::int32_t step) { return stage.rows_of(buffer, step % 2); };

  std::vector<OpId> added{product(0, slot(sum, 0), stage.ready)};  // by step: when m is ready to be sent on
  for (std::int32_t step = 1; step < ranks; ++step) {
    const OpId exchange = builder.exchange({.axis = stage.axis,
                                            .shift = 1,
                                            .send = {slot(sum, step - 1)},
                                            .receive = {slot(sum, step)},
                                            .wire = options.dtype,
                                            .waits = {added.back()}});
    // On its own lane the add of two steps ago may still be reading the slot.
    const bool slot_in_use = own_lane && step >= 3;
    const OpId partial_product =
        product(step, slot(partial, step),
                slot_in_use ? std::vector<OpId>{added[static_cast<std::size_t>(step) - 2]} : std::vector<OpId>{});
    const bool last = step + 1 == ranks;
    added.push_back(builder.elementwise(
        {.lane = {options.add_lane, 0},
         .function = Function::add,
         .inputs = {{slot(sum, step)}, {slot(partial, step)}},
         .out = {last ? builder.whole(stage.output) : slot(sum, step)},
         .waits = own_lane ? std::vector<OpId>{exchange, partial_product} : std::vector<OpId>{exchange}}));
  }
  return {added.back()};
}

}  // namespace commfuse
