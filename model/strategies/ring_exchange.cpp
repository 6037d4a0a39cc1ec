// SPDX-License-Identifier: Apache-2.0
// TransformerEngine userbuffers, method ring_exchange of tp_comm_overlap (CommOverlapP2PBase::split_overlap_ag and
// split_overlap_rs). Copy engines move the data, which is the default (use_ce). With 4 ranks, on rank r:
//
//   ag_gemm, one shard per GEMM (the default; FuseAG's ring has the same order):
//             compute  |x[r]    |x[r-1]  |x[r-2]  |x[r-3] |
//             copy     |r ->    |r-1 ->  |r-2 ->  |
//
//   ag_gemm, aggregate (group = 2), two shards per GEMM:
//             compute        |x[r], x[r-1]      |x[r-2], x[r-3]   |
//             copy     |r -> |r, r-1 -> r+2     |                      the first transfer is the head
//
//   gemm_rs   compute  |p[r+1]  |p[r+2]  |p[r+3]  |p[r]    |+|
//             copy              |-> r+1  |-> r+2  |-> r+3  |
//
// Let c and C be the times of the GEMM of one shard and of a group of g shards, p and P the times of their transfers,
// and s the time of the sum; g divides N. The makespan of ag_gemm is (g-1) p + C + (N/g - 1) max(C, P), which is
// c + (N-1) max(c, p) for g = 1. The makespan of gemm_rs is c + (N-1) max(c, p) + s.
//
// Backward (transformer_engine/pytorch/module/linear.py). A copy (m) moves dy into the buffer that the ring fills,
// where it stays for dw. By default TransformerEngine scatters dx in bulk (strategy `sliced`). If this method scatters
// dx instead, NCCL gathers x during the GEMMs, and the sum precedes dw on the main stream:
//
//   gemm_rs_backward   compute  |m|dx[r]  |dx[r-1] |dx[r-2] |dx[r-3] |dw ...........|      proj_dgrad, fc2_dgrad
//                      copy       |r ->   |r-1 ->  |r-2 ->  |
//
//   ag_gemm_backward   compute  |p[r+1]  |p[r+2]  |p[r+3]  |p[r]    |+|dw ...........|     qkv_dgrad, fc1_dgrad
//                      copy              |-> r+1  |-> r+2  |-> r+3  |
//                      comm     |==== ag x ====|
//
// Let w be the time of dw's GEMM and G the time to gather x (0 if x was saved). The makespan of gemm_rs_backward is
// that of ag_gemm plus m + w; the makespan of ag_gemm_backward is max(c + (N-1) max(c, p) + s, G) + w. One rank takes c
// + w.
//
// With aggregate, TransformerEngine's ranks 2i and 2i+1 swap their shards, which needs an even N. In this model every
// rank receives the shard of its predecessor. The number and sizes of transfers are the same, but all ranks run the
// same ops, and an odd N is possible: the last GEMM then has a single shard.
#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "model/strategies/partials_to_owners.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"
#include "model/strategies/whole_backward.h"

namespace commfuse {

namespace {

/// Returns the region of rank r that holds shard r - i.
using RegionOf = std::function<Region(std::int32_t i)>;
/// Adds the GEMM of some shards into rows of the output.
using MultiplyShards = std::function<OpId(const Operand& shards, const Operand& rows, const std::vector<OpId>& waits)>;

/// Passes shards on around the ring, `options.group` at a time; the transfer of each group overlaps the GEMM of the
/// previous group. The rank's own shard is available after `ready`. Returns the last GEMM.
OpId pass_on(const Stage& stage, const StrategyOptions& options, const std::vector<OpId>& ready, const RegionOf& place,
             const MultiplyShards& multiply) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const std::int32_t group = std::min(options.group, ranks);
  const auto shards = [&](std::int32_t first, std::int32_t count) {
    Operand rows;
    for (std::int32_t i = first; i < first + count; ++i) {
      rows.push_back(place(i));
    }
    return rows;
  };
  std::vector<OpId> arrived = ready;
  const auto move = [&](std::int32_t from, std::int32_t shift, std::int32_t count) {
    return builder.exchange({.lane = copy_lane,
                             .axis = stage.axis,
                             .shift = shift,
                             .send = shards(from, count),
                             .receive = shards(from + shift, count),
                             .wire = options.dtype,
                             .waits = from == 0 ? arrived : std::vector<OpId>{}});
  };
  for (std::int32_t i = 1; i < group; ++i) {
    arrived = {move(i - 1, 1, 1)};
  }
  OpId gemm{};
  for (std::int32_t first = 0; first < ranks; first += group) {
    const std::int32_t count = std::min(group, ranks - first);
    const std::int32_t next = std::min(group, ranks - first - count);
    std::vector<OpId> moved;
    if (next > 0) {
      moved = {move(first, group, next)};
    }
    Operand rows;
    for (std::int32_t i = first; i < first + count; ++i) {
      rows.push_back(builder.rows_of(stage.output, along(builder.mesh(), stage.axis, -i)));
    }
    gemm = multiply(shards(first, count), rows, arrived);
    arrived = std::move(moved);
  }
  return gemm;
}

Done ring_exchange_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const BufferId gathered = stage.ranks > 1 ? stage.scratch("gathered", stage.ranks - 1, stage.input) : stage.input;
  const auto place = [&](std::int32_t i) {
    return i == 0 ? builder.whole(stage.input) : builder.rows_of(gathered, i - 1);
  };
  return {pass_on(stage, options, stage.ready, place,
                  [&](const Operand& shards, const Operand& rows, const std::vector<OpId>& waits) {
                    return builder.gemm({.a = shards, .b = {builder.whole(stage.weight)}, .out = rows, .waits = waits});
                  })};
}

Done ring_exchange_gemm_rs_backward(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  ProgramBuilder& builder = stage.builder;
  const BufferId dy = stage.scratch("gathered", stage.ranks, stage.input);
  const auto place = [&](std::int32_t i) { return builder.rows_of(dy, along(builder.mesh(), stage.axis, -i)); };
  const OpId entered = builder.elementwise(
      {.function = Function::copy, .inputs = {{builder.whole(stage.input)}}, .out = {place(0)}, .waits = stage.ready});
  const OpId gemm = pass_on(
      stage, options, {entered}, place,
      [&](const Operand& shards, const Operand& rows, const std::vector<OpId>& waits) {
        return builder.gemm(
            {.a = shards, .b = {builder.whole(stage.weight)}, .out = rows, .waits = waits, .transpose_b = true});
      });
  whole_gradient(stage, stage.saved, dy, {});
  return {gemm};
}

Done ring_exchange_ag_gemm_backward(const Stage& stage, const StrategyOptions& options) {
  if (stage.ranks == 1) {
    return backward_alone(stage);
  }
  const GatheredInput x = gather_input(stage, options, {});
  const Done scattered = partials_to_owners(stage, {.transfers = copy_lane, .transposed = true});
  whole_gradient(stage, x.buffer, stage.input, x.complete);
  return scattered;
}

Done ring_exchange_gemm_rs(const Stage& stage, const StrategyOptions&) {
  return partials_to_owners(stage, {.transfers = copy_lane});
}

OptionSet group_of_gather(SiteKind kind, const StrategyOptions&) {
  return kind == SiteKind::ag_gemm || kind == SiteKind::gemm_rs_backward ? OptionSet{Option::group} : OptionSet{};
}

std::vector<StrategyOptions> groups(const StrategyOptions& base, OptionSet fixed) {
  return expanded({base}, fixed, Option::group, &StrategyOptions::group, {1, 2});
}
std::vector<StrategyOptions> all_groups(const StrategyOptions& base) {
  return expanded({base}, {}, Option::group, &StrategyOptions::group, {1, 2, 3});
}

std::string group_in_words(const StrategyOptions& options) { return fmt::format("g={}", options.group); }

}  // namespace

constexpr Strategy ring_exchange_strategy{
    .name = "ring_exchange",
    .summary = "copy engines forward shards, one or two per GEMM (TransformerEngine)",
    .exposed = "max(0, transfer - GEMM) per step; with g=2, also the first transfer",
    .source = "TransformerEngine userbuffers, tp_comm_overlap method ring_exchange (g=2: aggregate)",
    .uses = {Option::group, Option::regather},
    .cuts = parts::one_cut,
    .ag_gemm = ring_exchange_ag_gemm,
    .gemm_rs = ring_exchange_gemm_rs,
    .ag_gemm_backward = ring_exchange_ag_gemm_backward,
    .gemm_rs_backward = ring_exchange_gemm_rs_backward,
    .relevant = parts::with_regather<group_of_gather>,
    .tried = groups,
    .proved = parts::both_regathers<all_groups>,
    .describe = group_in_words,
};

}  // namespace commfuse
