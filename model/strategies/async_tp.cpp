// SPDX-License-Identifier: Apache-2.0
// PyTorch async-TP (torch/distributed/_symmetric_memory: _pipelined_multi_all_gather_and_consume and
// _pipelined_produce_and_all2all): every rank puts its own shard into symmetric memory, and copy engines pull it from
// there, one peer after another; the pulls and the GEMMs alternate between two streams. 4 ranks, seen from rank r;
// m is the copy into symmetric memory, + the sum of the N partial products:
//
//   ag_gemm   compute  |m|x[r]    |x[r+1]   |x[r+2]   |x[r+3] |
//             copy       |<- r+1  |<- r+2   |<- r+3   |           the pull of x[r+3] follows the GEMM of x[r+1]
//
//   gemm_rs   compute  |p[r+1]   |p[r+2]   |p[r+3]    |p[r]     |+|
//             copy               |<- r-1   |<- r-2    |<- r-3   |  p[r+3] follows the first pull: one buffer per stream
//
// With the times c of a GEMM, p of a pull and s of the sum, the makespan of ag_gemm is m + c + (N-1) max(c, p). That of
// gemm_rs is c + (N-1) max(c, p) + s, and min(c, p) more for an odd N > 1, where the rank's own GEMM follows the last
// pull on its stream.
//
// In the backward pass, the fusing compiler pass (torch/_inductor/fx_passes/micro_pipeline_tp.py) finds dx = dy w^T
// after its gather or before its scatter. A gather whose result is transposed into dw = x^T dy is not fused: x is
// gathered again by a collective that overlaps nothing, or was saved, since the forward pass returns the gathered x
// (return_A). dy stays gathered for dw; the rank's own shard is copied next to the other shards during the last GEMM of
// dx:
//
//   ag_gemm_backward   compute  |(as gemm_rs: dx)|+|          |dw ...........|
//                      comm                        |= ag x ==|
//
//   gemm_rs_backward   compute  |m|dx[r]  |dx[r+1]  |dx[r+2]  |dx[r+3] |dw ...........|
//                      copy       |<- r+1 |<- r+2   |<- r+3   |
//
// Let g be the time of the gather (0 if x was saved) and w that of dw's GEMM. The makespan of ag_gemm_backward is that
// of gemm_rs plus g + w; the makespan of gemm_rs_backward is m + c + (N-1) max(c, p) + w. One rank takes c + w.
//
// According to the source, the copies ("cp") of different streams cannot overlap, so they share a lane; this kind of
// lane needs no SMs. Barriers of the source are modelled as the wait of a pull for its sender: a pull starts when both
// ranks are ready for it. GEMMs of the two streams do not run at the same time here.
#include <functional>

#include "model/strategies/fuse_steps.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"
#include "model/strategies/whole_backward.h"

namespace commfuse {

namespace {

/// Copies the input into `symmetric`, memory that other ranks can read, and pulls the shards of the other ranks, each
/// under the GEMM of the previous shard. `pulled` returns the place of the shard of rank r + step; `multiply` adds the
/// GEMM of a shard. Returns the GEMMs. Requires stage.ranks > 1.
std::vector<OpId> pull_and_multiply(
    const Stage& stage, const StrategyOptions& options, BufferId symmetric,
    const std::function<Region(std::int32_t step)>& pulled,
    const std::function<OpId(std::int32_t step, const Region& shard, const std::vector<OpId>& waits)>& multiply) {
  ProgramBuilder& builder = stage.builder;
  const OpId put = builder.elementwise({.function = Function::copy,
                                        .inputs = {{builder.whole(stage.input)}},
                                        .out = {builder.whole(symmetric)},
                                        .waits = stage.ready});
  std::vector<OpId> gemms{multiply(0, builder.whole(stage.input), {})};
  for (std::int32_t step = 1; step < stage.ranks; ++step) {
    const OpId pull = builder.exchange({.lane = copy_lane,
                                        .axis = stage.axis,
                                        .shift = -step,
                                        .send = {builder.whole(symmetric)},
                                        .receive = {pulled(step)},
                                        .wire = options.dtype,
                                        .waits = {step == 1 ? put : gemms[static_cast<std::size_t>(step) - 2]}});
    gemms.push_back(multiply(step, pulled(step), {pull}));
  }
  return gemms;
}

Done async_tp_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const auto multiply = [&](std::int32_t step, const Region& shard, const std::vector<OpId>& waits) {
    return builder.gemm({.a = {shard},
                         .b = {builder.whole(stage.weight)},
                         .out = {builder.rows_of(stage.output, along(builder.mesh(), stage.axis, step))},
                         .waits = waits});
  };
  if (stage.ranks == 1) {
    return {multiply(0, builder.whole(stage.input), stage.ready)};
  }
  const BufferId symmetric = stage.scratch("symmetric", 1, stage.input);
  const BufferId gathered = stage.scratch("gathered", stage.ranks - 1, stage.input);
  const auto pulled = [&](std::int32_t step) { return builder.rows_of(gathered, step - 1); };
  return {pull_and_multiply(stage, options, symmetric, pulled, multiply).back()};
}

/// Adds the GEMMs of all shards and the scatter of their results; `transposed`: the second factor is w^T.
Done scatter(const Stage& stage, bool transposed) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const auto multiply = [&](std::int32_t step, const Region& out, const std::vector<OpId>& waits) {
    const Index shard = along(builder.mesh(), stage.axis, step);
    return builder.gemm({.a = {builder.rows_of(stage.input, shard)},
                         .b = {builder.whole(stage.weight)},
                         .out = {out},
                         .waits = waits,
                         .transpose_b = transposed});
  };
  if (ranks == 1) {
    return {multiply(0, builder.whole(stage.output), stage.ready)};
  }
  const BufferId symmetric = stage.scratch("symmetric", 2, stage.output);  // one slot per stream
  const BufferId pulled = stage.scratch("pulled", ranks - 1, stage.output);
  const BufferId own_product = stage.scratch("own", 1, stage.output);
  std::vector<Operand> parts;
  std::vector<OpId> pulls;
  // Returns the pull of two steps earlier, which precedes this step on the same stream.
  const auto waits_on_stream = [&](std::int32_t step) {
    return step < 3 ? std::vector<OpId>{} : std::vector{pulls[static_cast<std::size_t>(step) - 3]};
  };
  for (std::int32_t step = 1; step < ranks; ++step) {
    const Region slot = builder.rows_of(symmetric, step % 2);
    const OpId produced = multiply(step, slot, step == 1 ? stage.ready : waits_on_stream(step));
    parts.push_back({builder.rows_of(pulled, step - 1)});
    pulls.push_back(builder.exchange({.lane = copy_lane,
                                      .axis = stage.axis,
                                      .shift = step,
                                      .send = {slot},
                                      .receive = parts.back(),
                                      .wire = builder.buffer_of(stage.output).dtype,
                                      .waits = {produced}}));
  }
  // The rank's own GEMM is on the stream of the even steps.
  multiply(0, builder.whole(own_product), waits_on_stream(ranks % 2 == 0 ? ranks : ranks + 1));
  parts.push_back({builder.whole(own_product)});
  return {builder.elementwise(
      {.function = Function::add, .inputs = parts, .out = {builder.whole(stage.output)}, .waits = {pulls.back()}})};
}

Done async_tp_gemm_rs(const Stage& stage, const StrategyOptions&) { return scatter(stage, false); }

Done async_tp_ag_gemm_backward(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  const Done scattered = scatter(stage, true);
  const GatheredInput x = gather_input(stage, options, scattered);
  whole_gradient(stage, x.buffer, stage.input, x.complete);
  return scattered;
}

Done async_tp_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const auto shard = [&](std::int32_t step) { return along(builder.mesh(), stage.axis, step); };
  const BufferId dy = stage.scratch("gathered", stage.ranks, stage.input);
  const BufferId symmetric = stage.scratch("symmetric", 1, stage.input);
  const std::vector<OpId> gemms = pull_and_multiply(
      stage, options, symmetric, [&](std::int32_t step) { return builder.rows_of(dy, shard(step)); },
      [&](std::int32_t step, const Region& operand, const std::vector<OpId>& waits) {
        return builder.gemm({.a = {operand},
                             .b = {builder.whole(stage.weight)},
                             .out = {builder.rows_of(stage.output, shard(step))},
                             .waits = waits,
                             .transpose_b = true});
      });
  // The copy is on the stream of the second-to-last GEMM, so it runs concurrently with the last GEMM.
  const OpId copied = copy_own_shard(stage, stage.input, dy, {gemms[gemms.size() - 2]});
  whole_gradient(stage, stage.saved, dy, {copied});
  return {gemms.back()};
}

}  // namespace

constexpr Strategy async_tp_strategy{
    .name = "async_tp",
    .summary = "copy engines pull shards from symmetric memory; two streams alternate (PyTorch)",
    .exposed = "max(0, pull - GEMM) per step; with odd ranks, one pull or one GEMM more",
    .source = "PyTorch async-TP, torch.distributed._symmetric_memory",
    .uses = {Option::regather},
    .cuts = parts::one_cut,
    .ag_gemm = async_tp_ag_gemm,
    .gemm_rs = async_tp_gemm_rs,
    .ag_gemm_backward = async_tp_ag_gemm_backward,
    .gemm_rs_backward = async_tp_gemm_rs_backward,
    .relevant = parts::with_regather<parts::no_options>,
    .tried = parts::only,
    .proved = parts::both_regathers<parts::only_this>,
    .describe = parts::nothing,
};

}  // namespace commfuse
