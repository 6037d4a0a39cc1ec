// SPDX-License-Identifier: Apache-2.0
// Fuse-All-to-All (CommFuse Alg 5): both all-to-alls of Ulysses in N-1 steps. Each step sends a part directly to the
// rank that needs it, while the next part is computed; a rank's own part comes last. With 4 ranks, seen from rank r:
//
//                            step 0    step 1    step 2    step 3
//   gemm_a2a        compute  q[r+1]    q[r+2]    q[r+3]    q[r]         q[j]: own tokens, head group j
//                   comm     idle      q[r+1] -> q[r+2] -> q[r+3] ->
//
//   attention_a2a   compute  a[r+1]    a[r+2]    a[r+3]    a[r]   o[r] o[r-1] o[r-2] o[r-3]
//                   comm     idle      a[r+1] -> a[r+2] -> a[r+3] ->    a[j]: own heads, queries of rank j
//                                                                       o[s]: own tokens, head group s, added up
//
// Let q, a and o be the times of one part and p that of a transfer, each of 1/N^2 of the whole and equal on all ranks.
// The makespan of gemm_a2a is q + (N-1) max(q, p). That of attention_a2a is E(N-1), with A(0) = 0 and
// A(i) = max(i a, A(i-1)) + p for arrivals, E(0) = N a + o and E(i) = max(E(i-1), A(i)) + o. If one op computes the
// attention of all queries, it precedes the first transfer: A(i) = N a + i p.
#include "model/strategies/strategies.h"
#include "model/strategies/ulysses.h"

namespace commfuse {

Done fuse_gemm_a2a(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const auto multiply = [&](std::int32_t step, const Region& out, const std::vector<OpId>& waits) {
    const Index group = along(builder.mesh(), stage.axis, 1 + step);
    return builder.gemm({.a = {builder.whole(stage.input)},
                         .b = {head_group(stage, stage.weight, group)},
                         .out = {out},
                         .waits = waits});
  };
  const auto shard = [&](BufferId buffer, std::int32_t offset) {
    return stage.rows_of(buffer, along(builder.mesh(), stage.axis, offset) * stage.cuts, stage.cuts);
  };
  if (ranks == 1) {
    return {multiply(0, builder.whole(stage.output), stage.ready)};
  }
  const BufferId part = stage.scratch("part", 2 * stage.cuts, stage.output);  // one being computed, one being sent
  std::vector<OpId> sent;
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    std::vector<OpId> free = step == 0 ? stage.ready : std::vector<OpId>{};
    if (step >= 2) {
      free = {sent[static_cast<std::size_t>(step) - 2]};
    }
    const Region slot = stage.rows_of(part, step % 2 * stage.cuts, stage.cuts);
    const OpId computed = multiply(step, slot, free);
    sent.push_back(builder.exchange({.axis = stage.axis,
                                     .shift = step + 1,
                                     .send = {slot},
                                     .receive = {shard(stage.output, -1 - step)},
                                     .wire = options.dtype,
                                     .waits = {computed}}));
  }
  return {multiply(ranks - 1, shard(stage.output, 0), {}), sent.back()};
}

Done fuse_attention_a2a(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const auto queries = [&](std::int32_t offset) {
    return stage.rows_of(stage.input, along(builder.mesh(), stage.axis, offset) * stage.cuts, stage.cuts);
  };
  const BufferId inbox = ranks > 1 ? stage.scratch("inbox", (ranks - 1) * stage.cuts, stage.input) : stage.input;
  std::vector<Operand> parts{{}};              // rows of the rank's own tokens: its own heads, then the arriving parts
  std::vector<std::vector<OpId>> arrived{{}};  // ops after which each part is complete
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    const Operand slice{queries(1 + step)};
    parts.push_back({stage.rows_of(inbox, step * stage.cuts, stage.cuts)});
    arrived.push_back({builder.exchange({.axis = stage.axis,
                                         .shift = step + 1,
                                         .send = slice,
                                         .receive = parts.back(),
                                         .wire = options.dtype,
                                         .waits = attended(stage, slice, step == 0)})});
  }
  parts.front() = {queries(0)};
  arrived.front() = attended(stage, parts.front(), ranks == 1);
  Done done;
  for (std::int32_t step = 0; step < ranks; ++step) {
    const auto i = static_cast<std::size_t>(step);
    const Index group = along(builder.mesh(), stage.axis, -step);
    done = {builder.gemm({.a = parts[i],
                          .b = {head_group_rows(stage, stage.weight, group)},
                          .out = {builder.whole(stage.output)},
                          .accumulate = step > 0,
                          .waits = arrived[i]})};
  }
  return done;
}

}  // namespace commfuse
