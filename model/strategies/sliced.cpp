// SPDX-License-Identifier: Apache-2.0
// Data slicing: every rank's shard is cut into k slices; slice i of all ranks is gathered, or scattered, under the GEMM
// of a neighbouring slice. An ag_gemm communicates first and a gemm_rs computes first, as Ascend CoC (COCParallel) and
// Megatron's pipelined chunks do. k = 4:
//
//   ag_gemm   comm     |ag0|ag1|ag2|ag3|
//             compute      |y0 |y1 |y2 |y3 |          ag0 is the head
//
//   gemm_rs   compute  |y0 |y1 |y2 |y3 |
//             comm         |rs0|rs1|rs2|rs3|          rs3 is the tail
//
//   gemm_ar   compute  |y0 |y1 |y2 |y3 |
//             comm         |ar0|ar1|ar2|ar3|          a slice is a contiguous part of all tokens
//
//   mlp_ar    compute  |up |act|d0 |d1 |d2 |d3 |           |r|n|    only the second GEMM is sliced; a slice is a
//             comm                   |ar0|ar1|ar2|ar3|            contiguous part of all tokens
//
// Let r = T_coll(V/k) be the time of the collective of one slice, V being the bytes of all slices, and c' the time of
// one slice's GEMM. The makespan is c' + (k-1) max(c', r) + r; mlp_ar adds its ops before and after the slices (in its
// diagram, r is the residual and n the norm). One rank has nothing to hide, so its GEMM is whole.
//
// In ag_gemm and gemm_rs, a slice holds rows of every shard. `strided` GEMMs read and write these rows in place.
// `copied` GEMMs work on contiguous rows, as in CoC: before gemm_rs the whole input is shuffled into slices
// (shuffle_as_coc_all_gather), and after ag_gemm the whole output is shuffled back into shards
// (shuffle_as_coc_reduce_scatter). This is one more copy, unless k = 1.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "model/strategies/generators.h"
#include "model/strategies/mlp_block.h"
#include "model/strategies/rings.h"
#include "model/strategies/slices.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"

namespace commfuse {

namespace {

// GEMMs read and write the rows of a slice in place (strided), or work on contiguous copies of them (copied).
constexpr std::array<std::string_view, 2> shuffle_words{"strided", "copied"};
constexpr std::array own_options{DescribedOption{.key = "strategy.shuffles",
                                                 .flag = "shuffles",
                                                 .doc = "sliced: GEMMs use slices in place (strided) or copied",
                                                 .column = "sliced: strided or copied slices",
                                                 .example = "copied",
                                                 .noun = "value",
                                                 .nouns = "values",
                                                 .value = OwnWords{shuffle_words},
                                                 .needs_whole_attention = true}};

Option shuffles() { return own_option(own_options.front()); }
bool are_copied(const StrategyOptions& options) { return text_of(shuffles(), options) == "copied"; }

/// Returns true if rows are copied. Attention by query slice rules this out: it computes rows only when a GEMM requests
/// them.
bool copies(const Stage& stage, const StrategyOptions& options) {
  return are_copied(options) && options.slices > 1 && !stage.attend;
}

Done sliced_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const std::int32_t tokens = stage.ranks * stage.cuts;
  const BufferId gathered = stage.scratch("gathered", tokens, stage.input);
  const BufferId shuffled = copies(stage, options) ? stage.scratch("shuffled", tokens, stage.output) : stage.output;
  Done done{gather_ahead(stage, options, gathered, [&](std::int32_t i, OpId arrived) {
    return builder.gemm(
        {.a = slice(stage, gathered, i),
         .b = {builder.whole(stage.weight)},
         .out = copies(stage, options) ? slice(stage, shuffled, i) : slice_of_all_shards(stage, stage.output, i),
         .waits = {arrived}});
  })};
  if (copies(stage, options)) {
    done = {builder.elementwise(
        {.function = Function::copy, .inputs = {{builder.whole(shuffled)}}, .out = all_slices(stage, stage.output)})};
  }
  return done;
}

Done sliced_gemm_rs(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const std::int32_t tokens = stage.ranks * stage.cuts;
  const BufferId partial = stage.scratch("partial", tokens, stage.output);
  const BufferId shuffled = copies(stage, options) ? stage.scratch("shuffled", tokens, stage.input) : stage.input;
  std::vector<OpId> ready = stage.ready;
  if (copies(stage, options)) {
    ready = {builder.elementwise({.function = Function::copy,
                                  .inputs = {all_slices(stage, stage.input)},
                                  .out = {builder.whole(shuffled)},
                                  .waits = stage.ready})};
  }
  Done done;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const OpId gemm = stage.multiply(
        {.a = copies(stage, options) ? slice(stage, shuffled, i) : slice_of_all_shards(stage, stage.input, i),
         .b = {builder.whole(stage.weight)},
         .out = slice(stage, partial, i),
         .waits = i == 0 ? ready : std::vector<OpId>{}});
    done = {builder.collective({.kind = CollectiveKind::reduce_scatter,
                                .axis = stage.axis,
                                .in = slice(stage, partial, i),
                                .out = {stage.rows_of(stage.output, i)},
                                .wire = builder.buffer_of(stage.output).dtype,
                                .waits = {gemm}})};
  }
  return done;
}

Done sliced_gemm_ar(const Stage& stage, const StrategyOptions&) {
  if (stage.ranks == 1) {
    return multiply_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId partial = stage.scratch("partial", stage.ranks * stage.cuts, stage.output);
  Done done;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const OpId gemm = stage.multiply({.a = slice(stage, stage.input, i),
                                      .b = {builder.whole(stage.weight)},
                                      .out = slice(stage, partial, i),
                                      .waits = i == 0 ? stage.ready : std::vector<OpId>{}});
    done = {builder.collective({.kind = CollectiveKind::all_reduce,
                                .axis = stage.axis,
                                .in = slice(stage, partial, i),
                                .out = slice(stage, stage.output, i),
                                .wire = builder.buffer_of(stage.output).dtype,
                                .waits = {gemm}})};
  }
  return done;
}

Done sliced_mlp_ar(const Stage& stage, const StrategyOptions&) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t tokens = stage.ranks * stage.cuts;
  const MlpBlock block(stage);
  if (stage.ranks == 1) {
    return block.alone();
  }
  const BufferId reduced = stage.scratch("reduced", tokens, stage.added);
  block.activate(0, tokens, stage.ready);
  std::vector<OpId> summed;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const std::int32_t first = i * stage.ranks;
    const OpId multiplied = block.multiply(first, stage.ranks);
    summed = {builder.collective({.kind = CollectiveKind::all_reduce,
                                  .axis = stage.axis,
                                  .in = {block.partial(first, stage.ranks)},
                                  .out = {builder.rows_of(reduced, first, stage.ranks)},
                                  .wire = builder.buffer_of(reduced).dtype,
                                  .waits = {multiplied}})};
  }
  return {block.add_and_norm({LaneKind::compute, 0}, builder.whole(reduced), 0, builder.whole(stage.output), summed)};
}

std::int32_t slices(const StrategyOptions& options) { return options.slices; }

OptionSet slicing_options(SiteKind kind, const StrategyOptions& options) {
  if (kind == SiteKind::ag_gemm_backward) {
    return {};  // not sliced
  }
  const bool forward = kind == SiteKind::ag_gemm || kind == SiteKind::gemm_rs;
  return forward && options.slices > 1 ? OptionSet{Option::slices, shuffles()} : OptionSet{Option::slices};
}

std::vector<StrategyOptions> slice_counts(const StrategyOptions& base, OptionSet fixed) {
  // Every slice holds queries from all over the sequence, so zig-zag would not change the balance.
  return expanded(expanded({base}, fixed, Option::slices, &StrategyOptions::slices, {2, 4, 8}), fixed,
                  Option::attention, &StrategyOptions::attention, {AttentionCut::whole, AttentionCut::by_query});
}
std::vector<StrategyOptions> all_slicings(const StrategyOptions& base) {
  return parts::in_all_cuts(expanded(expanded({base}, {}, Option::slices, &StrategyOptions::slices, {1, 2, 4, 8}), {},
                                     shuffles(), {"strided", "copied"}),
                            {});
}

std::string slicing_in_words(const StrategyOptions& options) {
  return fmt::format("k={}{}", options.slices, are_copied(options) ? ", copied" : "");
}

}  // namespace

constexpr Strategy sliced_strategy{
    .name = "sliced",
    .summary = "k slices; the collective of one under the GEMM of another (CoC, Megatron)",
    .exposed = "the first gather or the last scatter; k latencies",
    .source = "Ascend MindSpeed CoC (copied); Megatron-Core tp_comm_overlap, pipelined chunks (strided)",
    .uses = {Option::slices, Option::regather, Option::attention},
    .own_options = own_options,
    .cuts = slices,
    .ag_gemm = sliced_ag_gemm,
    .gemm_rs = sliced_gemm_rs,
    .gemm_ar = sliced_gemm_ar,
    .mlp_ar = sliced_mlp_ar,
    .ag_gemm_backward = sliced_ag_gemm_backward,
    .gemm_rs_backward = sliced_gemm_rs_backward,
    .gemm_a2a = sliced_gemm_a2a,
    .attention_a2a = sliced_attention_a2a,
    .weight_ag_gemm = sliced_weight_ag_gemm,
    .gradient_rs = sliced_gradient_rs,
    .relevant = parts::with_regather<slicing_options>,
    .tried = slice_counts,
    .proved = parts::both_regathers<all_slicings>,
    .describe = slicing_in_words,
};

}  // namespace commfuse
