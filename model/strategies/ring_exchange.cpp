// SPDX-License-Identifier: Apache-2.0
// TransformerEngine userbuffers, method ring_exchange of tp_comm_overlap (CommOverlapP2PBase::split_overlap_ag and
// split_overlap_rs), moved by copy engines, its default (use_ce). 4 ranks, seen from rank r:
//
//   ag_gemm, one shard a product (the default; FuseAG's ring has the same order):
//             compute  |x[r]    |x[r-1]  |x[r-2]  |x[r-3] |
//             copy     |r ->    |r-1 ->  |r-2 ->  |
//
//   ag_gemm, aggregate (group = 2), two shards a product:
//             compute        |x[r], x[r-1]      |x[r-2], x[r-3]   |
//             copy     |r -> |r, r-1 -> r+2     |                      the first transfer is the head
//
//   gemm_rs   compute  |p[r+1]  |p[r+2]  |p[r+3]  |p[r]    |+|
//             copy              |-> r+1  |-> r+2  |-> r+3  |
//
// GEMM of one shard c, of a group C; transfer of one p, of a group P; sum s; g | N: makespan
// (g-1) p + C + (N/g - 1) max(C, P) for ag_gemm (g = 1: c + (N-1) max(c, p)), c + (N-1) max(c, p) + s for gemm_rs.
//
// With aggregate, TransformerEngine's ranks 2i and 2i+1 swap their shards and need an even N. Here every rank takes the
// shard of its predecessor: there are as many transfers of the same sizes, they are the same on all ranks, and an odd N
// ends with a single shard.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/strategies/partials_to_owners.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"

namespace commfuse {

namespace {

constexpr Lane copy_engine{LaneKind::copy, 0};

Done ring_exchange_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const std::int32_t group = std::min(options.group, ranks);
  const BufferId gathered = ranks > 1 ? stage.scratch("gathered", ranks - 1, stage.input) : stage.input;
  // Returns shard r - i of rank r, by i.
  const auto shard = [&](std::int32_t i) {
    return i == 0 ? builder.whole(stage.input) : builder.rows_of(gathered, i - 1);
  };
  const auto shards = [&](std::int32_t first, std::int32_t count) {
    Operand rows;
    for (std::int32_t i = first; i < first + count; ++i) {
      rows.push_back(shard(i));
    }
    return rows;
  };
  std::vector<OpId> arrived = stage.ready;
  const auto move = [&](std::int32_t from, std::int32_t shift, std::int32_t count) {
    return builder.exchange({.lane = copy_engine,
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
  Done done;
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
    done = {
        builder.gemm({.a = shards(first, count), .b = {builder.whole(stage.weight)}, .out = rows, .waits = arrived})};
    arrived = std::move(moved);
  }
  return done;
}

Done ring_exchange_gemm_rs(const Stage& stage, const StrategyOptions& options) {
  return partials_to_owners(stage, options, {.transfers = copy_engine});
}

OptionSet group_of_gather(SiteKind kind, const StrategyOptions&) {
  return kind == SiteKind::ag_gemm ? OptionSet{Option::group} : OptionSet{};
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
    .summary = "copy engines pass shards on, one or two a product (TransformerEngine)",
    .exposed = "what a transfer is longer than a product; the first transfer when two go together",
    .source = "TransformerEngine userbuffers, tp_comm_overlap method ring_exchange (g=2: aggregate)",
    .uses = {Option::group},
    .cuts = parts::one_cut,
    .ag_gemm = ring_exchange_ag_gemm,
    .gemm_rs = ring_exchange_gemm_rs,
    .relevant = group_of_gather,
    .tried = groups,
    .proved = all_groups,
    .describe = group_in_words,
};

}  // namespace commfuse
