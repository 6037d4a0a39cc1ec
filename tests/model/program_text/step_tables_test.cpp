// SPDX-License-Identifier: Apache-2.0
// The step tables of the CommFuse paper for N = 4 follow from the lowered programs. The golden texts were checked by
// hand, cell by cell, against those tables:
//   fuse_ag_ring    Fig 6: x[0..3] are a, b, c, d; every rank's "computed / sent on / received"
//   fuse_ag_direct  not in the paper: the GEMMs of Fig 6 in the same steps, but every rank sends only its own shard,
//                   by shift 1, 2, 3
//   fuse_rs_ring    Fig 7, whose slices are numbered from 1: down[3]{0} is a4, and m3 = d3 + a3 is down[2]{0,3}
//   attention_by_query  fuse_ag_direct's table, then fuse_rs_direct's with an attention core before every partial
//                   product; attended[j,r] is the output of rank r's heads for query slice j; p0[1] is out_proj[1]{0}
//   attention_zigzag    the same, where slice j is blocks j and 7-j of eight
//   fuse_a2a        Alg 5: qkv[s,j] is head group j of the tokens of rank s; attention by query slice; each slice goes
//                   to its owner, which adds up head groups r, r-1, r-2, r-3
//   fuse_rs_direct  Fig 9b: p0[1] is down[1]{0}; the table's row "end" is the add in step 3
// Schedules of other projects were checked against the order in the projects' sources, which the comment of each
// generator names:
//   looped_einsum_ag     FuseAG's ring
//   looped_einsum_rs     FuseRS's ring, but zeros are sent in step 0
//   async_tp_ag          pulls from r+1, r+2, r+3
//   async_tp_rs          pulls from r-1, r-2, r-3
//   ring_exchange_ag     FuseAG's ring
//   ring_exchange_pairs  one shard by shift 1, then two shards by shift 2
//   ring_exchange_rs     FuseRS direct, but each sum begins with the rank's own partial product
// Schedules of options that are not in the paper were checked against the pictures in the generators' comments:
//   *_parts         two parts per shard; the GEMM of the rank's own shard has both parts
//   *_halves        2i, the first half of shard i, moves to the next rank; 2i+1, the second half, to the previous rank
//   fuse_ag_shards  shards r-1 and r+1 arrive in one step, then shard r-2
//   fuse_rs_shards  the shard two ranks away is sent first; the last sum has three terms
//   fuse_ag_groups  one GEMM each for shards r; r-1; r-2 and r-3
//   fuse_rs_groups  one GEMM each for shards r-1 and r-2; r-3; r
//   *_nested        ranks 0 and 1 are one node, 2 and 3 another; x[0] crosses to rank 2 once, and the other node's sum
//                   of down[0] crosses to rank 0 once
//   fuse_rs_arrival rank 0 adds down[0]{2,3} before {1} has arrived and its own {0} is computed
#include <gtest/gtest.h>

#include <string>

#include "model/program_text/step_table.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "tests/model/strategies/golden_text.h"

namespace commfuse {
namespace {

std::string step_table_of(Scope scope, const char* strategy, const StrategyOptions& options, std::int32_t ranks) {
  return step_table(generate(operation_of(scope, true), Mesh{{{"tp", ranks}}}, 0, *find_strategy(strategy), options));
}

std::string commfuse_forward_table(Scope scope, Form form) {
  StrategyOptions options;
  options.form = form;
  return step_table_of(scope, "commfuse", options, 4);
}

TEST(StepTables, FuseAgRingMatchesFigure6) {
  const std::string table = commfuse_forward_table(Scope::qkv, Form::ring);
  EXPECT_EQ(table, golden_text("fuse_ag_ring.txt", table));
}

TEST(StepTables, FuseAgDirectComputesAsFigure6AndSendsOnlyOwnShards) {
  const std::string table = commfuse_forward_table(Scope::qkv, Form::direct);
  EXPECT_EQ(table, golden_text("fuse_ag_direct.txt", table));
}

TEST(StepTables, FuseRsRingMatchesFigure7) {
  const std::string table = commfuse_forward_table(Scope::down, Form::ring);
  EXPECT_EQ(table, golden_text("fuse_rs_ring.txt", table));
}

TEST(StepTables, FuseRsDirectMatchesFigure9b) {
  const std::string table = commfuse_forward_table(Scope::down, Form::direct);
  EXPECT_EQ(table, golden_text("fuse_rs_direct.txt", table));
}

TEST(StepTables, LoopedEinsumMovesAShardPerStepAndScattersZerosFirst) {
  const std::string gather = step_table_of(Scope::qkv, "looped_einsum", {}, 4);
  EXPECT_EQ(gather, golden_text("looped_einsum_ag.txt", gather));
  const std::string scatter = step_table_of(Scope::down, "looped_einsum", {}, 4);
  EXPECT_EQ(scatter, golden_text("looped_einsum_rs.txt", scatter));
}

TEST(StepTables, AsyncTpPullsFromOnePeerAfterAnother) {
  const std::string gather = step_table_of(Scope::qkv, "async_tp", {}, 4);
  EXPECT_EQ(gather, golden_text("async_tp_ag.txt", gather));
  const std::string scatter = step_table_of(Scope::down, "async_tp", {}, 4);
  EXPECT_EQ(scatter, golden_text("async_tp_rs.txt", scatter));
}

TEST(StepTables, RingExchangeForwardsShardsSinglyOrInPairs) {
  const std::string gather = step_table_of(Scope::qkv, "ring_exchange", {}, 4);
  EXPECT_EQ(gather, golden_text("ring_exchange_ag.txt", gather));
  StrategyOptions options;
  options.group = 2;
  const std::string pairs = step_table_of(Scope::qkv, "ring_exchange", options, 4);
  EXPECT_EQ(pairs, golden_text("ring_exchange_pairs.txt", pairs));
  const std::string scatter = step_table_of(Scope::down, "ring_exchange", {}, 4);
  EXPECT_EQ(scatter, golden_text("ring_exchange_rs.txt", scatter));
}

TEST(StepTables, AttentionByQueryTakesTheOwnSliceLast) {
  const std::string table =
      step_table_of(Scope::attention, "commfuse", {.form = Form::direct, .attention = AttentionCut::by_query}, 4);
  EXPECT_EQ(table, golden_text("attention_by_query.txt", table));
}

TEST(StepTables, ZigZagAttentionTakesASliceAndItsMirrorImage) {
  const std::string table =
      step_table_of(Scope::attention, "commfuse", {.form = Form::direct, .attention = AttentionCut::zigzag}, 4);
  EXPECT_EQ(table, golden_text("attention_zigzag.txt", table));
}

TEST(StepTables, FuseAllToAllGivesEachRankItsHeadsAndThenItsTokens) {
  const std::string table = step_table_of(Scope::ulysses, "commfuse", {.attention = AttentionCut::by_query}, 4);
  EXPECT_EQ(table, golden_text("fuse_a2a.txt", table));
}

/// Compares the table on four ranks, which form nested rings if `options.inner` is set.
void expect_step_table(const char* name, Scope scope, const StrategyOptions& options) {
  const std::string table = step_table(generate(operation_of(scope, true), 4, commfuse_strategy, options));
  EXPECT_EQ(table, golden_text(name, table));
}

TEST(StepTables, FuseAgInPartsSendsAndMultipliesPartByPart) {
  expect_step_table("fuse_ag_parts.txt", Scope::qkv, {.sub_slices = 2});
}

TEST(StepTables, FuseAgInHalvesMultipliesBothArrivedHalvesTogether) {
  expect_step_table("fuse_ag_halves.txt", Scope::qkv, {.lanes = 2, .directions = Directions::halves});
}

TEST(StepTables, FuseAgInWholeShardsBothWaysBringsTwoShardsPerStep) {
  expect_step_table("fuse_ag_shards.txt", Scope::qkv, {.lanes = 2, .directions = Directions::shards});
}

TEST(StepTables, FuseAgInGroupsMultipliesTheOwnShardAloneAndThenTheShortGroup) {
  expect_step_table("fuse_ag_groups.txt", Scope::qkv, {.group = 2});
}

TEST(StepTables, FuseAgInNestedRingsCrossesIntoEveryNodeOnce) {
  expect_step_table("fuse_ag_nested.txt", Scope::qkv, {.inner = 2});
}

TEST(StepTables, FuseRsInHalvesAddsBothArrivedHalvesTogether) {
  expect_step_table("fuse_rs_halves.txt", Scope::down, {.lanes = 2, .directions = Directions::halves});
}

TEST(StepTables, FuseRsInWholeShardsBothWaysEndsInAnAddOfThree) {
  expect_step_table("fuse_rs_shards.txt", Scope::down, {.lanes = 2, .directions = Directions::shards});
}

TEST(StepTables, FuseRsInGroupsMultipliesGroupsButAddsShardsSingly) {
  expect_step_table("fuse_rs_groups.txt", Scope::down, {.add_lane = LaneKind::aux, .group = 2});
}

TEST(StepTables, FuseRsDirectOnArrivalAddsWhileItComputes) {
  expect_step_table("fuse_rs_arrival.txt", Scope::down,
                    {.form = Form::direct, .add_lane = LaneKind::aux, .sum = Sum::arrival, .lanes = 3});
}

TEST(StepTables, FuseRsInNestedRingsCrossesOutOfEveryNodeOnce) {
  expect_step_table("fuse_rs_nested.txt", Scope::down, {.inner = 2});
}

TEST(StepTables, SlicedGathersTheNextSliceDuringTheGemmOfThisSlice) {
  StrategyOptions options;
  options.slices = 2;
  EXPECT_EQ(step_table_of(Scope::qkv, "sliced", options, 2),
            "sliced (k=2) qkv, 2 ranks\n"
            "\n"
            "step 0\n"
            "  rank 0: all_gather x[0] into x[0], x[2]\n"
            "  rank 1: all_gather x[2] into x[0], x[2]\n"
            "\n"
            "step 1\n"
            "  rank 0: all_gather x[1] into x[1], x[3]; compute qkv[0,0], qkv[2,0]\n"
            "  rank 1: all_gather x[3] into x[1], x[3]; compute qkv[0,1], qkv[2,1]\n"
            "\n"
            "step 2\n"
            "  rank 0: compute qkv[1,0], qkv[3,0]\n"
            "  rank 1: compute qkv[1,1], qkv[3,1]\n");
}

TEST(StepTables, OneRankComputesInOneStep) {
  EXPECT_EQ(step_table_of(Scope::down, "serial", {}, 1),
            "serial down, 1 rank\n"
            "\n"
            "step 0\n"
            "  rank 0: compute down[0] = x[0] * down.weight[0]\n");
}

}  // namespace
}  // namespace commfuse
