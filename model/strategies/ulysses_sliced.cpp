// SPDX-License-Identifier: Apache-2.0
// Sliced Ulysses: every rank's tokens are cut into k slices, and the all-to-all of one slice runs under the compute of
// the next. A slice of queries holds slice i of every rank's tokens. k = 4, attention by query slice:
//
//   gemm_a2a        compute  |q0 |q1 |q2 |q3 |
//                   comm         |aa0|aa1|aa2|aa3|                  aa3 is exposed
//
//   attention_a2a   compute  |a0 |a1 |a2 |a3 |o0 |o1 |o2 |o3 |
//                   comm         |aa0|aa1|aa2|aa3|                  hidden if r <= a and r <= o (see below)
//
// With one slice's GEMM q, attention a, out-projection o and all-to-all r, gemm_a2a takes q + (k-1) max(q, r) + r.
// For attention_a2a, E(0) = k a and E(i) = max(E(i-1), A(i-1)) + o with A(i) = max((i+1) a, A(i-1)) + r; the makespan
// is E(k). If one op computes the attention of all queries, it precedes aa0: A(i) = k a + (i+1) r. One rank has nothing
// to hide and slices nothing.
#include "model/strategies/rings.h"
#include "model/strategies/strategies.h"
#include "model/strategies/ulysses.h"

namespace commfuse {

Done sliced_gemm_a2a(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId own_tokens = stage.scratch("own", stage.cuts, builder.buffer_of(stage.weight).columns, options.dtype);
  Done done;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const OpId gemm = builder.gemm({.a = {stage.rows_of(stage.input, i)},
                                    .b = {builder.whole(stage.weight)},
                                    .out = {stage.rows_of(own_tokens, i)},
                                    .waits = i == 0 ? stage.ready : std::vector<OpId>{}});
    done = {builder.collective({.kind = CollectiveKind::all_to_all,
                                .axis = stage.axis,
                                .in = by_head_group(stage, own_tokens, i, 1),
                                .out = slice_of_all_shards(stage, stage.output, i),
                                .wire = options.dtype,
                                .waits = {gemm}})};
  }
  return done;
}

Done sliced_attention_a2a(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId own_tokens = stage.scratch("own", stage.cuts, builder.buffer_of(stage.weight).rows, options.dtype);
  std::vector<OpId> returned;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const Operand slice = slice_of_all_shards(stage, stage.input, i);
    returned.push_back(builder.collective({.kind = CollectiveKind::all_to_all,
                                           .axis = stage.axis,
                                           .in = slice,
                                           .out = by_head_group(stage, own_tokens, i, 1),
                                           .wire = options.dtype,
                                           .waits = attended(stage, slice, i == 0)}));
  }
  Done done;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    done = {builder.gemm({.a = {stage.rows_of(own_tokens, i)},
                          .b = {builder.whole(stage.weight)},
                          .out = {stage.rows_of(stage.output, i)},
                          .waits = {returned[static_cast<std::size_t>(i)]}})};
  }
  return done;
}

}  // namespace commfuse
