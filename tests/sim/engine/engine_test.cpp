// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/sim/engine/hand.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

TEST(Engine, OpsOfOneLaneRunOneAfterAnother) {
  Hand hand(1);
  hand.work(0);
  hand.work(1);
  const Simulated simulated(std::move(hand.builder).build(), {.elementwise = 5us});
  EXPECT_EQ(simulated.span(0, 0), (Span{0, 5 * us}));
  EXPECT_EQ(simulated.span(0, 1), (Span{5 * us, 10 * us}));
}

TEST(Engine, OpsOfTwoLanesRunSideBySideUnlessOneWaits) {
  Hand hand(1);
  const OpId first = hand.work(0);
  hand.work(1, {}, {LaneKind::aux, 0});
  hand.work(2, {first}, {LaneKind::aux, 1});
  const Simulated simulated(std::move(hand.builder).build(), {.elementwise = 5us});
  EXPECT_EQ(simulated.span(0, 1), (Span{0, 5 * us}));
  EXPECT_EQ(simulated.span(0, 2), (Span{5 * us, 10 * us}));
}

TEST(Engine, TheHostIssuesInProgramOrderWhateverTheLane) {
  // Issuing costs 3 us per op, so op n is issued at 3 (n + 1) us. It starts immediately because its lane is free.
  Hand hand(1);
  hand.work(0);
  hand.work(1, {}, {LaneKind::aux, 0});
  hand.work(2, {}, {LaneKind::copy, 0});
  const Simulated simulated(std::move(hand.builder).build(), {.elementwise = 1us, .issue = 3us});
  EXPECT_EQ(simulated.span(0, 0), (Span{3 * us, 4 * us}));
  EXPECT_EQ(simulated.span(0, 1), (Span{6 * us, 7 * us}));
  EXPECT_EQ(simulated.span(0, 2), (Span{9 * us, 10 * us}));
}

TEST(Engine, AHalfStartsWhenBothItsEndsArePosted) {
  // Rank 1 works for 5 us before it exchanges, rank 0 does not, so no half can start before 5 us.
  Hand hand(2);
  const OpId slow = hand.builder.elementwise(
      {.function = Function::copy, .inputs = {hand.slot(0)}, .out = hand.slot(0), .purpose = Purpose::essential});
  hand.pass_on(0, 1, {slow});
  Program program = std::move(hand.builder).build();
  program.ops[0].where = {Relation::equal, 0, 1};  // Only rank 1 works.
  const Simulated simulated(std::move(program), {.exchange = 2us, .elementwise = 5us});
  EXPECT_EQ(simulated.span(0, 1), (Span{5 * us, 7 * us}));
  EXPECT_EQ(simulated.span(1, 1), (Span{5 * us, 7 * us}));
}

TEST(Engine, AnExchangeHoldsItsLaneUntilBothHalvesHaveEnded) {
  // Three ranks form a ring; only rank 1 is late, by 5 us. Rank 0 sends to 1 and receives from 2: its receive half runs
  // immediately, but its send half waits for rank 1, so its lane is occupied until 7 us and the second exchange ends at
  // 9 us.
  Hand hand(3);
  const OpId late = hand.work(0);
  hand.pass_on(0, 1, {late});
  hand.pass_on(1, 2);
  Program program = std::move(hand.builder).build();
  program.ops[0].where = {Relation::equal, 0, 1};
  const Simulated simulated(std::move(program), {.exchange = 2us, .elementwise = 5us});
  EXPECT_EQ(simulated.span(0, 1), (Span{0, 7 * us}));  // receives 0..2, sends 5..7
  EXPECT_EQ(simulated.span(2, 1), (Span{0, 7 * us}));  // sends 0..2, receives 5..7
  EXPECT_EQ(simulated.span(0, 2), (Span{7 * us, 9 * us}));
  EXPECT_EQ(simulated.makespan(), Duration{9us});
}

TEST(Engine, ASendToTheOwnRankIsAnExchangeToo) {
  Hand hand(1);
  hand.pass_on(0, 1);
  const Simulated simulated(std::move(hand.builder).build(), {.exchange = 2us});
  EXPECT_EQ(simulated.span(0, 0), (Span{0, 2 * us}));
}

TEST(Engine, ACollectiveStartsAtTheLastArrivalAndEndsSimultaneously) {
  Hand hand(4);
  const OpId late = hand.work(0);
  hand.builder.collective(
      {.kind = CollectiveKind::all_reduce, .in = hand.slot(1), .out = hand.slot(2), .waits = {late}});
  Program program = std::move(hand.builder).build();
  program.ops[0].where = {Relation::equal, 0, 2};
  const Simulated simulated(std::move(program), {.collective = 4us, .elementwise = 3us});
  for (Rank rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(simulated.span(rank, 1), (Span{3 * us, 7 * us})) << rank;
  }
}

TEST(Engine, OneSlowLinkDelaysTheRingAsTheRecurrencePredicts) {
  // FuseAG on three ranks, with GEMMs of 10 us and transfers of 4 us; only the link 0 -> 1 takes 25 us. First exchange:
  // 0 sends at 0-25 us, 1 and 2 send at 0-4 us. The lanes of 0 and 1 are held until 25 us, the lane of 2 until 4 us.
  // Second exchange: 1 -> 2 and 2 -> 0 at 25-29 us, 0 -> 1 at 25-50 us. So the last GEMMs of ranks 0, 1 and 2 start at
  // 50, 50 and 29 us.
  const Program program = one_site("commfuse", SiteKind::ag_gemm, 3);
  const auto shared = std::make_shared<const Program>(program);
  Costs costs = costs_of(program, {.gemm = 10us, .exchange = 4us});
  for (Rank rank = 0; rank < 3; ++rank) {
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const bool slow = rank == 0 && program.ops[op].kind == OpKind::exchange;
      costs.by_rank.push_back(slow ? Duration{25us} : costs.duration[op]);
    }
  }
  Recorder recorder;
  Engine{}.run(plan_of(lower(shared)), costs, recorder);

  EXPECT_EQ(recorder.summary(0).last_end.time_since_epoch(), Duration{60us});
  EXPECT_EQ(recorder.summary(1).last_end.time_since_epoch(), Duration{60us});
  EXPECT_EQ(recorder.summary(2).last_end.time_since_epoch(), Duration{39us});
}

TEST(Engine, GroupsOfACollectiveAreTheRanksThatDifferOnItsAxisOnly) {
  // {node: 2, tp: 2}: rank 3 is late, so its group {2, 3} is late too; {0, 1} is not.
  ProgramBuilder builder("groups", Mesh{{{"node", 2}, {"tp", 2}}});
  const Extent rows{builder.dimension("rows", 2), 2};
  const Extent columns{builder.dimension("columns", 1), 1};
  const BufferId buffer = builder.buffer("b", BufferRole::scratch, rows, columns, DType::fp32);
  const OpId late = builder.elementwise({.function = Function::copy,
                                         .inputs = {{builder.rows_of(buffer, 0)}},
                                         .out = {builder.rows_of(buffer, 0)},
                                         .purpose = Purpose::essential});
  builder.collective({.kind = CollectiveKind::all_reduce,
                      .axis = 1,
                      .in = {builder.rows_of(buffer, 0)},
                      .out = {builder.rows_of(buffer, 1)},
                      .waits = {late}});
  Program program = std::move(builder).build();
  program.ops[0].where = {Relation::equal, 0, 1};
  const Simulated simulated(std::move(program), {.collective = 4us, .elementwise = 3us});
  EXPECT_EQ(simulated.span(0, 1), (Span{0, 4 * us}));
  EXPECT_EQ(simulated.span(1, 1), (Span{0, 4 * us}));
  EXPECT_EQ(simulated.span(2, 1), (Span{3 * us, 7 * us}));
  EXPECT_EQ(simulated.span(3, 1), (Span{3 * us, 7 * us}));
}

TEST(Engine, TheSameRunTwiceGivesTheSameTimeline) {
  const OpCosts costs{.gemm = 10us, .exchange = 7us, .elementwise = 1us, .issue = 2us};
  const Simulated first(one_site("commfuse", SiteKind::gemm_rs, 7), costs);
  const Simulated second(one_site("commfuse", SiteKind::gemm_rs, 7), costs);
  EXPECT_EQ(first.recorder.timeline(), second.recorder.timeline());
}

TEST(Engine, AReusedEngineForgetsThePreviousRun) {
  const auto first = std::make_shared<const Program>(one_site("commfuse", SiteKind::ag_gemm, 5));
  const auto second = std::make_shared<const Program>(one_site("serial", SiteKind::ag_gemm, 2));
  Engine engine;
  Recorder recorder;
  engine.run(plan_of(lower(first)), costs_of(*first, {.gemm = 10us, .exchange = 30us}), recorder);
  EXPECT_EQ(recorder.makespan().time_since_epoch(), Duration{130us});
  engine.run(plan_of(lower(second)), costs_of(*second, {.gemm = 10us, .collective = 30us}), recorder);
  EXPECT_EQ(recorder.makespan().time_since_epoch(), Duration{40us});
}

}  // namespace
}  // namespace commfuse::test
