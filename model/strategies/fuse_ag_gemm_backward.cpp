// SPDX-License-Identifier: Apache-2.0
// CommFuse for the backward pass of a column-parallel GEMM. FuseRS computes and scatters dx = dy w^T. Under its GEMMs,
// the steps of FuseAG gather x. dw = x^T dy follows as one GEMM, which hides the rest of the scatter. One GEMM per
// shard would instead read and write the whole fp32 gradient for every shard.
//
// The gather comes first on the comm lane, because dw needs all of x. p[j] is the rank's part of dx for shard j, x[j]
// is shard j of x. With 4 ranks, on rank r:
//
//            step 0     step 1     step 2     step 3
//   compute  p[r+1]     p[r+2]     p[r+3]     p[r]       dw ....................... sum        (direct)
//   comm     x[r]       x[r]       x[r]       p[r+1] ->  p[r+2] ->  p[r+3] ->
//
// With the times c of a GEMM of dx, p of a transfer (gather or scatter), w of the GEMM of dw, and s of the sum:
//   makespan max(max(N c, (N-1) p) + w, E(N-1)) + s    with E(0) = (N-1) p, E(i) = max(E(i-1), i c) + p
// so nothing is exposed as long as p <= c and 2 (N-1) p <= N c + w. In the ring form, an add takes time a. With adds
// on their own lane, E(0) = max(c, (N-1) p), E(i) = max(E(i-1) + p, (i+1) c) + a, and the makespan is max(max(N c,
// (N-1) p) + w, E(N-1)). If all of x was saved, there is no gather; (N-1) p in E(0) and in the makespan is then 0.
//
// Adds on the compute lane cannot run during dw. In that case each GEMM hides one step of the gather followed by one
// step of the scatter, and dw hides only the last step of the scatter. m is a running sum:
//
//   compute  p[r-1]     p[r-2] +   p[r-3] +   p[r]       dw ....... +                          (ring)
//   comm     x[r] m     x[r-1] m   x[r-2] m
//
// This exposes nothing as long as 2 p <= c + a.
#include "model/strategies/fuse_steps.h"
#include "model/strategies/strategies.h"

namespace commfuse {

namespace {

/// x of all ranks in the order of the shards.
struct Gathered {
  BufferId buffer{};
  std::vector<Operand> places;  // operands for gather_step
  std::vector<OpId> complete;   // ops after which the buffer is complete
};

Gathered begin_gather(const Stage& stage, const StrategyOptions& options) {
  if (options.regather == Regather::saved || stage.ranks == 1) {
    return {.buffer = stage.saved, .places = {}, .complete = {}};
  }
  ProgramBuilder& builder = stage.builder;
  Gathered x{.buffer = stage.scratch("gathered", stage.ranks, stage.saved),
             .places = {{builder.whole(stage.saved)}},
             .complete = {}};
  for (std::int32_t behind = 1; behind < stage.ranks; ++behind) {
    x.places.push_back({builder.rows_of(x.buffer, along(builder.mesh(), stage.axis, -behind))});
  }
  return x;
}

}  // namespace

Done fuse_ag_gemm_backward(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const bool adds_on_compute = options.form == Form::ring && options.add_lane == LaneKind::compute;
  ScatterSteps scatter(stage, options, stage.output,
                       adds_on_compute ? ScatterSteps::Slots::two : ScatterSteps::Slots::all);
  Gathered x = begin_gather(stage, options);
  std::vector<OpId> gemms;
  for (std::int32_t step = 0; step < stage.ranks; ++step) {
    if (!x.places.empty() && step + 1 < stage.ranks) {
      x.complete = {gather_step(stage, options, step, x.places, {})};
    }
    gemms.push_back(builder.gemm({.a = {builder.rows_of(stage.input, scatter.shard(step))},
                                  .b = {builder.whole(stage.weight)},
                                  .out = {scatter.place(step)},
                                  .waits = step == 0 ? stage.ready : scatter.free(step),
                                  .transpose_b = true}));
    if (adds_on_compute) {
      scatter.take(step, gemms.back());
    }
  }
  if (!x.places.empty()) {
    x.complete.push_back(copy_own_shard(stage, stage.saved, x.buffer, {}));
  }
  builder.gemm({.a = {builder.whole(x.buffer)},
                .b = {builder.whole(stage.input)},
                .out = {builder.whole(stage.gradient)},
                .waits = x.complete,
                .transpose_a = true});
  for (std::int32_t step = 0; step < stage.ranks && !adds_on_compute; ++step) {
    scatter.take(step, gemms[static_cast<std::size_t>(step)]);
  }
  return scatter.finish();
}

}  // namespace commfuse
