// SPDX-License-Identifier: Apache-2.0
// Serial: nothing overlaps.
//
//   ag_gemm   comm     |== all-gather ==|
//             compute                   |===== GEMM ======|
//
//   gemm_rs   compute  |===== GEMM ======|
//             comm                       |== reduce-scatter ==|
//
//   gemm_ar   compute  |===== GEMM ======|
//             comm                       |== all-reduce ==|
//
//   mlp_ar    compute  |=== GEMM ====|a|=== GEMM ====|                    |r|n|
//             comm                                    |== all-reduce ==|            a activation, r residual, n norm
//
// The makespan is C + T_coll, where C is the compute time and T_coll the time of the collective; for one rank it is C.
#include "model/strategies/generators.h"
#include "model/strategies/mlp_block.h"
#include "model/strategies/rings.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"

namespace commfuse {

namespace {

Done serial_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId gathered = stage.scratch("gathered", stage.ranks * stage.cuts, stage.input);
  const OpId gather = builder.collective({.kind = CollectiveKind::all_gather,
                                          .axis = stage.axis,
                                          .in = {builder.whole(stage.input)},
                                          .out = {builder.whole(gathered)},
                                          .wire = options.dtype,
                                          .waits = stage.ready});
  return {builder.gemm({.a = {builder.whole(gathered)},
                        .b = {builder.whole(stage.weight)},
                        .out = {builder.whole(stage.output)},
                        .waits = {gather}})};
}

/// Adds the GEMM, then the collective that sums its partial products.
Done multiply_and_sum(const Stage& stage, CollectiveKind kind) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId partial = stage.scratch("partial", stage.ranks * stage.cuts, stage.output);
  const OpId gemm = stage.multiply({.a = {builder.whole(stage.input)},
                                    .b = {builder.whole(stage.weight)},
                                    .out = {builder.whole(partial)},
                                    .waits = stage.ready});
  return {builder.collective({.kind = kind,
                              .axis = stage.axis,
                              .in = {builder.whole(partial)},
                              .out = {builder.whole(stage.output)},
                              .wire = builder.buffer_of(stage.output).dtype,
                              .waits = {gemm}})};
}

Done serial_gemm_rs(const Stage& stage, const StrategyOptions&) {
  return multiply_and_sum(stage, CollectiveKind::reduce_scatter);
}

Done serial_gemm_ar(const Stage& stage, const StrategyOptions&) {
  return multiply_and_sum(stage, CollectiveKind::all_reduce);
}

Done serial_mlp_ar(const Stage& stage, const StrategyOptions&) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t tokens = stage.ranks * stage.cuts;
  const MlpBlock block(stage);
  if (stage.ranks == 1) {
    return block.alone();
  }
  const BufferId reduced = stage.scratch("reduced", tokens, stage.added);
  block.activate(0, tokens, stage.ready);
  const OpId multiplied = block.multiply(0, tokens);
  const OpId summed = builder.collective({.kind = CollectiveKind::all_reduce,
                                          .axis = stage.axis,
                                          .in = {block.partial(0, tokens)},
                                          .out = {builder.whole(reduced)},
                                          .wire = builder.buffer_of(reduced).dtype,
                                          .waits = {multiplied}});
  return {block.add_and_norm({LaneKind::compute, 0}, builder.whole(reduced), 0, builder.whole(stage.output), {summed})};
}

}  // namespace

constexpr Strategy serial_strategy{
    .name = "serial",
    .summary = "the collective, then the GEMM (or the reverse)",
    .exposed = "the whole collective",
    .source = "every framework without overlap",
    .uses = {Option::regather},
    .cuts = parts::one_cut,
    .ag_gemm = serial_ag_gemm,
    .gemm_rs = serial_gemm_rs,
    .gemm_ar = serial_gemm_ar,
    .mlp_ar = serial_mlp_ar,
    .ag_gemm_backward = serial_ag_gemm_backward,
    .gemm_rs_backward = serial_gemm_rs_backward,
    .gemm_a2a = serial_gemm_a2a,
    .attention_a2a = serial_attention_a2a,
    .weight_ag_gemm = serial_weight_ag_gemm,
    .gradient_rs = serial_gradient_rs,
    .relevant = parts::with_regather<parts::no_options>,
    .tried = parts::only,
    .proved = parts::both_regathers<parts::only_this>,
    .describe = parts::nothing,
};

}  // namespace commfuse
