// SPDX-License-Identifier: Apache-2.0
// FuseRS, direct form with N buffers (CommFuse Fig 9b): every partial product goes straight to the rank that owns it,
// while the next one is computed; the owner sums its N buffers at the end.
//
//            step 0     step 1       step 2       step 3          (4 ranks, seen from rank r)
//   compute  p[r+1]     p[r+2]       p[r+3]       p[r]   sum
//   comm     idle       p[r+1] ->    p[r+2] ->    p[r+3] ->
//
// Product c, transfer p, sum s: makespan c + (N-1) max(c, p) + s (method.md 1.6).
#include "model/schedule/strategies.h"

namespace commfuse {

Done fuse_rs_direct(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const auto product = [&](std::int32_t step, const Region& out, const std::vector<OpId>& waits) {
    const Index shard = along(builder.mesh(), stage.axis, 1 + step);
    return stage.multiply(
        {.a = {stage.rows_of(stage.input, shard)}, .b = {builder.whole(stage.weight)}, .out = {out}, .waits = waits});
  };
  if (ranks == 1) {
    return {product(0, builder.whole(stage.output), stage.ready)};
  }
  const BufferId partial = stage.scratch("partial", 2, stage.output);      // being computed, being sent
  const BufferId inbox = stage.scratch("inbox", ranks - 1, stage.output);  // one slot a sender
  const BufferId own = stage.scratch("own", 1, stage.output);
  std::vector<Operand> parts;
  std::vector<OpId> sent;
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    std::vector<OpId> free = step == 0 ? stage.ready : std::vector<OpId>{};
    if (step >= 2) {
      free = {sent[static_cast<std::size_t>(step) - 2]};
    }
    const Region slot = stage.rows_of(partial, step % 2);
    const OpId computed = product(step, slot, free);
    const Region received = stage.rows_of(inbox, step);
    sent.push_back(builder.exchange({.axis = stage.axis,
                                     .shift = step + 1,
                                     .send = {slot},
                                     .receive = {received},
                                     .wire = options.dtype,
                                     .waits = {computed}}));
    parts.push_back({received});
  }
  product(ranks - 1, builder.whole(own), {});
  parts.push_back({builder.whole(own)});
  return {builder.elementwise(
      {.function = Function::add, .inputs = parts, .out = {builder.whole(stage.output)}, .waits = {sent.back()}})};
}

}  // namespace commfuse
