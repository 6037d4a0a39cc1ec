// SPDX-License-Identifier: Apache-2.0
#include "model/program/order.h"

#include <gtest/gtest.h>

#include "model/program/builder.h"

namespace commfuse {
namespace {

/// Makes copies, exchanges and all-reduces in two blocks of memory. Only the order of these ops matters here.
class LaneSketch {
 public:
  OpId copy(LaneKind lane, const std::vector<OpId>& waits = {}) {
    return builder_.elementwise({.lane = {lane, 0},
                                 .function = Function::copy,
                                 .inputs = {{builder_.rows_of(buffer_, 0)}},
                                 .out = {builder_.rows_of(buffer_, 1)},
                                 .waits = waits});
  }
  OpId exchange(const std::vector<OpId>& waits = {}, std::uint16_t lane = 0, std::int32_t shift = 1) {
    return builder_.exchange({.lane = {LaneKind::comm, lane},
                              .shift = shift,
                              .send = {builder_.rows_of(buffer_, 0)},
                              .receive = {builder_.rows_of(buffer_, 1)},
                              .waits = waits});
  }
  OpId exchange_on(Lane lane) {
    return builder_.exchange(
        {.lane = lane, .send = {builder_.rows_of(buffer_, 0)}, .receive = {builder_.rows_of(buffer_, 1)}});
  }
  OpId all_reduce(std::uint16_t lane, const std::vector<OpId>& waits = {}) {
    return all_reduce_on({LaneKind::comm, lane}, waits);
  }
  OpId all_reduce_on(Lane lane, const std::vector<OpId>& waits = {}) {
    return builder_.collective({.lane = lane,
                                .kind = CollectiveKind::all_reduce,
                                .in = {builder_.whole(buffer_)},
                                .out = {builder_.whole(buffer_)},
                                .waits = waits});
  }
  void only_on_rank(OpId op, Rank rank) { builder_.only_where(op, {Relation::equal, 0, rank}); }
  Program build() { return std::move(builder_).build(); }

 private:
  ProgramBuilder builder_{"sketch", Mesh{{{"tp", 4}}}};
  Extent rows_{builder_.dimension("rows", 2), 2};
  Extent columns_{builder_.dimension("columns", 1), 1};
  BufferId buffer_ = builder_.buffer("x", BufferRole::scratch, rows_, columns_, DType::bf16);
};

//   compute   a --- b
//                    \.
//   aux               c --- d        b, c and d wait as drawn
TEST(Order, IsTransitiveOverWaitsAndLanes) {
  LaneSketch sketch;
  const OpId a = sketch.copy(LaneKind::compute);
  const OpId b = sketch.copy(LaneKind::compute);
  const OpId c = sketch.copy(LaneKind::aux, {b});
  const OpId d = sketch.copy(LaneKind::aux);
  const Program program = sketch.build();
  const Order order(program, 0);
  EXPECT_TRUE(order.before(a, b));
  EXPECT_TRUE(order.before(b, c));
  EXPECT_TRUE(order.before(a, c));  // through b
  EXPECT_TRUE(order.before(a, d));  // through b and c
  EXPECT_FALSE(order.before(b, a));
  EXPECT_FALSE(order.before(a, a));
}

TEST(Order, DoesNotRelateOpsOfLanesThatDoNotWait) {
  LaneSketch sketch;
  const OpId a = sketch.copy(LaneKind::compute);
  const OpId b = sketch.exchange();
  const Program program = sketch.build();
  const Order order(program, 0);
  EXPECT_FALSE(order.before(a, b));
  EXPECT_FALSE(order.before(b, a));
}

TEST(Order, CountsFinishedOpsOnEachLane) {
  LaneSketch sketch;
  sketch.exchange();
  const OpId second = sketch.exchange();
  sketch.exchange();
  const OpId last = sketch.copy(LaneKind::compute, {second});
  const Program program = sketch.build();
  const Order order(program, 0);
  EXPECT_EQ(order.finished(last, program.ops[position(second)].lane), 2);
  EXPECT_EQ(order.finished(last, program.ops[position(last)].lane), 0);
  EXPECT_EQ(order.on_lane(program.ops[position(second)].lane).size(), 3U);
}

TEST(Order, OmitsOpsThatDoNotTakePart) {
  LaneSketch sketch;
  const OpId a = sketch.copy(LaneKind::compute);
  const OpId b = sketch.copy(LaneKind::aux, {a});
  const OpId c = sketch.copy(LaneKind::copy, {b});
  sketch.only_on_rank(b, 1);
  const Program program = sketch.build();
  EXPECT_TRUE(Order(program, 1).before(a, c));   // a, b, c
  EXPECT_FALSE(Order(program, 0).before(a, c));  // without b nothing relates c to a
  EXPECT_FALSE(Order(program, 0).takes_part(b));
}

//   comm     |x0 |x1 |            x1 waits for g0; g1 waits for x0
//   compute  |g0 |g1 |g2 |
TEST(Meetings, ArePairsOfOpsWithoutAnOrder) {
  LaneSketch sketch;
  const OpId x0 = sketch.exchange();
  const OpId g0 = sketch.copy(LaneKind::compute);
  const OpId x1 = sketch.exchange({g0});
  const OpId g1 = sketch.copy(LaneKind::compute, {x0});
  const OpId g2 = sketch.copy(LaneKind::compute, {x1});
  const Program program = sketch.build();
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  EXPECT_TRUE(meetings[position(g0)].exchange);   // x0 may run during g0
  EXPECT_TRUE(meetings[position(g1)].exchange);   // x1 may run during g1
  EXPECT_FALSE(meetings[position(g2)].exchange);  // x0 and x1 have finished
  EXPECT_FALSE(meetings[position(g0)].collective);
  EXPECT_FALSE(meetings[position(x0)].exchange);  // `exchange` is set only for compute ops.
}

//   comm     |x0 |x1 |x2 |            x2 waits for g1
//   comm1    |y0 |
//   compute  |g0 |g1 |                g1 waits for x0
TEST(Meetings, HaveTheRangeOfEveryLaneThatHoldsSms) {
  LaneSketch sketch;
  const OpId x0 = sketch.exchange();
  const OpId y0 = sketch.exchange({}, 1);
  const OpId x1 = sketch.exchange();
  const OpId g0 = sketch.copy(LaneKind::compute);
  const OpId g1 = sketch.copy(LaneKind::compute, {x0});
  sketch.exchange({g1});
  const Program program = sketch.build();
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  const std::vector<LaneRange>& beside_g0 = meetings[position(g0)].sm_holders;
  ASSERT_EQ(beside_g0.size(), 2U);
  EXPECT_EQ(beside_g0[0].first, x0);
  EXPECT_EQ(beside_g0[0].last, x1);
  EXPECT_EQ(beside_g0[1].first, y0);
  EXPECT_EQ(beside_g0[1].last, y0);
  const std::vector<LaneRange>& beside_g1 = meetings[position(g1)].sm_holders;
  ASSERT_EQ(beside_g1.size(), 2U);
  EXPECT_EQ(beside_g1[0].first, x1);
  EXPECT_EQ(beside_g1[0].last, x1);
  EXPECT_TRUE(meetings[position(x1)].sm_holders.empty());
}

TEST(Meetings, OmitExchangesThatHoldNoSms) {
  const auto meets_exchange = [](Lane lane) {
    LaneSketch sketch;
    sketch.exchange_on(lane);
    sketch.copy(LaneKind::compute);
    const Program program = sketch.build();
    return meetings_of(program, Order(program, 0)).back().exchange;
  };
  EXPECT_TRUE(meets_exchange({LaneKind::comm, 0}));
  EXPECT_TRUE(meets_exchange({LaneKind::comm, 3}));
  EXPECT_FALSE(meets_exchange({LaneKind::copy, 0}));
  EXPECT_FALSE(meets_exchange({LaneKind::kernel, 0}));
}

TEST(Meetings, OmitCollectivesThatCopyEnginesMove) {
  const auto meets_collective = [](Lane lane) {
    LaneSketch sketch;
    sketch.all_reduce_on(lane);
    sketch.copy(LaneKind::compute);
    const Program program = sketch.build();
    return meetings_of(program, Order(program, 0)).back().collective;
  };
  EXPECT_TRUE(meets_collective({LaneKind::comm, 0}));
  EXPECT_TRUE(meets_collective({LaneKind::aux, 0}));
  EXPECT_FALSE(meets_collective({LaneKind::copy, 0}));
}

TEST(Meetings, DistinguishExchangesFromCollectives) {
  LaneSketch sketch;
  sketch.all_reduce(1);
  const OpId on_compute = sketch.copy(LaneKind::compute);
  sketch.exchange();
  const OpId on_aux = sketch.copy(LaneKind::aux);
  const OpId after = sketch.all_reduce(2, {on_compute});
  const OpId on_copy = sketch.copy(LaneKind::copy, {after});
  const Program program = sketch.build();
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  EXPECT_TRUE(meetings[position(on_compute)].collective);
  EXPECT_TRUE(meetings[position(on_compute)].exchange);
  EXPECT_TRUE(meetings[position(on_aux)].collective);
  EXPECT_TRUE(meetings[position(on_aux)].exchange);
  EXPECT_TRUE(meetings[position(on_copy)].collective);  // the first all-reduce, on another lane
}

using Ops = std::vector<OpId>;

//   comm     |x0 ->1 |x1 ->2 |          x1 waits for y0
//   comm1    |y0 ->2 |y1 ->2 |
TEST(Rivals, AreTheConcurrentOpsOfOtherLanes) {
  LaneSketch sketch;
  const OpId x0 = sketch.exchange({}, 0, 1);
  const OpId y0 = sketch.exchange({}, 1, 2);
  const OpId x1 = sketch.exchange({y0}, 0, 2);
  const OpId y1 = sketch.exchange({}, 1, 2);
  const Program program = sketch.build();
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  EXPECT_EQ(meetings[position(x0)].rivals, Ops{y0});
  EXPECT_EQ(meetings[position(x1)].rivals, Ops{y1});
  EXPECT_EQ(meetings[position(y0)].rivals, Ops{x0});
  EXPECT_EQ(meetings[position(y1)].rivals, Ops{x1});
}

//   comm     |x0|x1|
//   comm1    |y0|                        finished when x1 runs
TEST(Rivals, DisappearWhenTheirLaneIsDone) {
  LaneSketch sketch;
  const OpId x0 = sketch.exchange({}, 0, 1);
  const OpId y0 = sketch.exchange({}, 1, 2);
  const OpId x1 = sketch.exchange({}, 0, 2);
  const Program program = sketch.build();
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  EXPECT_EQ(meetings[position(x0)].rivals, Ops{y0});
  EXPECT_EQ(meetings[position(y0)].rivals, Ops{x0});
  EXPECT_EQ(meetings[position(x1)].rivals, Ops{});
}

TEST(Rivals, AreNeitherInsideKernelsNorCredits) {
  LaneSketch sketch;
  const OpId x = sketch.exchange({}, 0, 1);
  const OpId y = sketch.exchange({}, 1, 2);
  const Program usual = sketch.build();
  Program in_kernel = usual;
  in_kernel.lanes[in_kernel.ops[position(y)].lane].kind = LaneKind::kernel;
  Program with_credit = usual;
  std::get<ExchangeShape>(with_credit.shapes[with_credit.ops[position(y)].shape]).rows.blocks = 0;
  EXPECT_EQ(meetings_of(usual, Order(usual, 0))[position(x)].rivals, Ops{y});
  for (const Program& program : {in_kernel, with_credit}) {
    EXPECT_EQ(meetings_of(program, Order(program, 0))[position(x)].rivals, Ops{});
  }
}

//   comm     |x0|x1|x2|
//   comm1       |y0|y1|y2|               each y waits for its x
TEST(Rivals, AreOneStepBehindOnAFollowingLane) {
  LaneSketch sketch;
  Ops x;
  Ops y;
  for (int i = 0; i < 3; ++i) {
    x.push_back(sketch.exchange({}, 0, 1));
    y.push_back(sketch.exchange({x.back()}, 1, 2));
  }
  const Program program = sketch.build();
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  EXPECT_EQ(meetings[position(x[0])].rivals, Ops{});
  EXPECT_EQ(meetings[position(x[1])].rivals, Ops{y[0]});
  EXPECT_EQ(meetings[position(x[2])].rivals, Ops{y[1]});
  EXPECT_EQ(meetings[position(y[1])].rivals, Ops{x[2]});
  EXPECT_EQ(meetings[position(y[2])].rivals, Ops{});
}

TEST(Rivals, DoNotExistOnOneLane) {
  LaneSketch sketch;
  sketch.exchange();
  sketch.copy(LaneKind::compute);
  sketch.exchange({}, 0, 2);
  const Program program = sketch.build();
  for (const Meetings& met : meetings_of(program, Order(program, 0))) {
    EXPECT_TRUE(met.rivals.empty());
  }
}

//   comm     |x0 |x1 |x2 |x3 |          x3 waits for the all-reduce
//   comm1        |reduced|
TEST(Contenders, AreTheSendsConcurrentWithACollective) {
  LaneSketch sketch;
  const OpId x0 = sketch.exchange();
  const OpId reduced = sketch.all_reduce(1, {x0});
  const OpId x1 = sketch.exchange();
  const OpId x2 = sketch.exchange();
  const OpId x3 = sketch.exchange({reduced});
  const Program program = sketch.build();
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  EXPECT_EQ(meetings[position(reduced)].contenders, (Ops{x1, x2}));
  EXPECT_EQ(meetings[position(x0)].contenders, Ops{});
  EXPECT_EQ(meetings[position(x1)].contenders, Ops{reduced});
  EXPECT_EQ(meetings[position(x2)].contenders, Ops{reduced});
  EXPECT_EQ(meetings[position(x3)].contenders, Ops{});
}

TEST(Contenders, AreCollectivesOfOtherLanesToo) {
  LaneSketch sketch;
  const OpId first = sketch.all_reduce(0);
  const OpId second = sketch.all_reduce(1);
  const OpId third = sketch.all_reduce(0);
  const Program program = sketch.build();
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  EXPECT_EQ(meetings[position(first)].contenders, Ops{second});
  EXPECT_EQ(meetings[position(second)].contenders, (Ops{first, third}));
  EXPECT_EQ(meetings[position(third)].contenders, Ops{second});
}

// Exchanges share wires through `rivals`, and transfers inside a kernel hold no wires.
TEST(Contenders, DoNotExistWithoutACollective) {
  LaneSketch sketch;
  sketch.exchange({}, 0);
  sketch.exchange({}, 1);
  const Program exchanges = sketch.build();
  LaneSketch kernel;
  kernel.exchange_on({LaneKind::kernel, 0});
  kernel.all_reduce(0);
  const Program with_kernel = kernel.build();
  for (const Program* program : {&exchanges, &with_kernel}) {
    for (const Meetings& met : meetings_of(*program, Order(*program, 0))) {
      EXPECT_TRUE(met.contenders.empty());
    }
  }
}

}  // namespace
}  // namespace commfuse
