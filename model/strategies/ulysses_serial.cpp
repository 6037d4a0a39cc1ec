// SPDX-License-Identifier: Apache-2.0
// Serial Ulysses: nothing overlaps.
//
//   gemm_a2a        compute  |== qkv ==|
//                   comm                |== all-to-all ==|
//
//   attention_a2a   compute  |== attention ==|                     |== out-proj ==|
//                   comm                      |== all-to-all ==|
//
// The makespan of both together is C + 2 T_coll, where C is the compute time and T_coll the time of one all-to-all; for
// one rank it is C.
#include "model/strategies/rings.h"
#include "model/strategies/strategies.h"
#include "model/strategies/ulysses.h"

namespace commfuse {

Done serial_gemm_a2a(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId own_tokens = stage.scratch("own", stage.cuts, builder.buffer_of(stage.weight).columns, options.dtype);
  const OpId gemm = builder.gemm({.a = {builder.whole(stage.input)},
                                  .b = {builder.whole(stage.weight)},
                                  .out = {builder.whole(own_tokens)},
                                  .waits = stage.ready});
  return {builder.collective({.kind = CollectiveKind::all_to_all,
                              .axis = stage.axis,
                              .in = by_head_group(stage, own_tokens, 0, stage.cuts),
                              .out = {builder.whole(stage.output)},
                              .wire = options.dtype,
                              .waits = {gemm}})};
}

Done serial_attention_a2a(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId own_tokens = stage.scratch("own", stage.cuts, builder.buffer_of(stage.weight).rows, options.dtype);
  const Operand all_heads{builder.whole(stage.input)};
  const OpId returned = builder.collective({.kind = CollectiveKind::all_to_all,
                                            .axis = stage.axis,
                                            .in = all_heads,
                                            .out = by_head_group(stage, own_tokens, 0, stage.cuts),
                                            .wire = options.dtype,
                                            .waits = attended(stage, all_heads, true)});
  return {builder.gemm({.a = {builder.whole(own_tokens)},
                        .b = {builder.whole(stage.weight)},
                        .out = {builder.whole(stage.output)},
                        .waits = {returned}})};
}

}  // namespace commfuse
