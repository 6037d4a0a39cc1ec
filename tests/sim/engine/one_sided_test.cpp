// SPDX-License-Identifier: Apache-2.0
// Tests pushes, pulls and credits: which rank waits for which, and how long a lane is held.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "model/analysis/critical_path.h"
#include "model/config_error.h"
#include "tests/sim/engine/hand.h"
#include "tests/sim/random_program.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

/// A program of two ranks. Rank 0 sends slot 0 in op 2, and rank 1 receives it into slot 1 in op 3. Before that, either
/// the sender works (op 0) or the receiver does (op 1).
struct OneWay {
  explicit OneWay(Protocol protocol, bool late_sender) {
    const OpId sender = hand.work(2);
    const OpId receiver = hand.work(2);
    hand.builder.exchange({.send = hand.slot(0), .protocol = protocol, .waits = {sender}});
    hand.builder.exchange({.receive = hand.slot(1), .protocol = protocol, .waits = {receiver}});
    program = std::move(hand.builder).build();
    program.ops[0].where = {Relation::equal, 0, late_sender ? 0 : 2};
    program.ops[1].where = {Relation::equal, 0, late_sender ? 2 : 1};
    program.ops[2].where = {Relation::equal, 0, 0};
    program.ops[3].where = {Relation::equal, 0, 1};
  }
  Hand hand{2};
  Program program;
};

TEST(OneSided, APushDoesNotWaitForItsReceiver) {
  const Simulated late_receiver(OneWay(Protocol::push, false).program, {.exchange = 2us, .elementwise = 5us});
  EXPECT_EQ(late_receiver.span(0, 2), (Span{0, 2 * us}));
  EXPECT_EQ(late_receiver.span(1, 3), (Span{5 * us, 5 * us}));  // The message arrives at 2 us.
  const Simulated late_sender(OneWay(Protocol::push, true).program, {.exchange = 2us, .elementwise = 5us});
  EXPECT_EQ(late_sender.span(0, 2), (Span{5 * us, 7 * us}));
  EXPECT_EQ(late_sender.span(1, 3), (Span{0, 7 * us}));
}

TEST(OneSided, APullFreesItsSenderImmediatelyAndHoldsTheReceiversLane) {
  const Simulated late_receiver(OneWay(Protocol::pull, false).program, {.exchange = 2us, .elementwise = 5us});
  EXPECT_EQ(late_receiver.span(0, 2), (Span{0, 0}));
  EXPECT_EQ(late_receiver.span(1, 3), (Span{5 * us, 7 * us}));
  const Simulated late_sender(OneWay(Protocol::pull, true).program, {.exchange = 2us, .elementwise = 5us});
  EXPECT_EQ(late_sender.span(0, 2), (Span{5 * us, 5 * us}));
  EXPECT_EQ(late_sender.span(1, 3), (Span{0, 7 * us}));
}

TEST(OneSided, ARendezvousHoldsBothLanes) {
  const Simulated simulated(OneWay(Protocol::rendezvous, false).program, {.exchange = 2us, .elementwise = 5us});
  EXPECT_EQ(simulated.span(0, 2), (Span{5 * us, 7 * us}));
  EXPECT_EQ(simulated.span(1, 3), (Span{5 * us, 7 * us}));
}

TEST(OneSided, PushesRunAheadOfALateReceiverWhereRendezvousWaits) {
  // Three pushes of 2 us each follow each other while the receiver is busy for 5 us. They and the last receive end at
  // 6 us.
  for (const auto& [protocol, end] : {std::pair{Protocol::push, 6}, std::pair{Protocol::rendezvous, 11}}) {
    Hand hand(2);
    const OpId busy = hand.work(3);
    for (std::int32_t step = 0; step < 3; ++step) {
      hand.builder.exchange({.send = hand.slot(step), .protocol = protocol});
      hand.builder.exchange({.receive = hand.slot(step), .protocol = protocol, .waits = {busy}});
    }
    Program program = std::move(hand.builder).build();
    program.ops[0].where = {Relation::equal, 0, 1};
    for (std::size_t op = 1; op < program.ops.size(); ++op) {
      program.ops[op].where = {Relation::equal, 0, op % 2 == 1 ? 0 : 1};
    }
    const Simulated simulated(std::move(program), {.exchange = 2us, .elementwise = 5us});
    EXPECT_EQ(simulated.span(1, 6).second, end * us);
  }
}

TEST(OneSided, TwoReceiversPullFromOneSenderAtTheSameTime) {
  // Rank 0 exposes slot 0 to both other ranks and is done; each pulls for 4 us on its own lane.
  Hand hand(3);
  for (const std::int32_t shift : {1, 2}) {
    hand.builder.exchange({.shift = shift, .send = hand.slot(0), .protocol = Protocol::pull});
    hand.builder.exchange({.shift = shift, .receive = hand.slot(1), .protocol = Protocol::pull});
  }
  Program program = std::move(hand.builder).build();
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    program.ops[op].where = {Relation::equal, 0, op % 2 == 0 ? 0 : static_cast<std::int32_t>(op + 1) / 2};
  }
  const Simulated simulated(std::move(program), {.exchange = 4us});
  EXPECT_EQ(simulated.span(0, 2), (Span{0, 0}));
  EXPECT_EQ(simulated.span(1, 1), (Span{0, 4 * us}));
  EXPECT_EQ(simulated.span(2, 3), (Span{0, 4 * us}));
}

TEST(OneSided, ACreditDelaysAPushByTheLatencyOfTheCredit) {
  // Rank 1 works for 5 us, then gives rank 0 a credit, which takes 1 us; only then does rank 0 push, which takes 2 us.
  Hand hand(2);
  const OpId work = hand.work(1);
  hand.builder.credit({.shift = -1, .receives = false, .waits = {work}});
  const OpId credit_received = hand.builder.credit({.shift = -1, .sends = false});
  hand.builder.exchange({.send = hand.slot(0), .protocol = Protocol::push, .waits = {credit_received}});
  hand.builder.exchange({.receive = hand.slot(1), .protocol = Protocol::push});
  Program program = std::move(hand.builder).build();
  const std::int32_t rank_of_op[] = {1, 1, 0, 0, 1};
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    program.ops[op].where = {Relation::equal, 0, rank_of_op[op]};
  }
  const auto shared = std::make_shared<const Program>(std::move(program));
  Costs costs = costs_of(*shared, {.exchange = 2us, .elementwise = 5us});
  costs.duration[1] = 1us;
  Recorder recorder;
  Engine{}.run(plan_of(lower(shared)), costs, recorder);
  EXPECT_EQ(recorder.makespan().time_since_epoch(), Duration{8us});
}

TEST(OneSided, RejectsFaultsThatStopAPullForever) {
  Hand hand(2);
  hand.builder.exchange({.send = hand.slot(0), .receive = hand.slot(1), .protocol = Protocol::pull});
  const auto shared = std::make_shared<const Program>(std::move(hand.builder).build());
  Faults faults;
  faults.links_down.push_back({.link = {0, 1}, .from = Instant{}, .until = std::nullopt});
  Recorder recorder;
  EXPECT_THROW(
      Engine{}.run(plan_of(lower(shared)), costs_of(*shared, {.exchange = 2us}), recorder, {.faults = &faults}),
      ConfigError);
}

TEST(OneSided, TheCriticalPathHasNoGapsAndIsAsLongAsTheRun) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2'000; ++i) {
    const auto program = std::make_shared<const Program>(random_program(random));
    const Costs costs = random_costs(*program, random);
    const Plan plan = plan_of(lower(program));
    Recorder recorder(Recorder::Keep::timeline);
    Engine{}.run(plan, costs, recorder);
    Instant reached;
    for (const PathStep& step : critical_path(plan.lowered, costs, recorder.timeline())) {
      ASSERT_EQ(step.from, reached) << "program " << i;
      if (step.kind != PathKind::issue) {
        ASSERT_EQ(step.to - step.from, costs.of(step.rank, position(step.op))) << "program " << i;
      }
      reached = step.to;
    }
    ASSERT_EQ(reached, recorder.makespan()) << "program " << i;
  }
}

}  // namespace
}  // namespace commfuse::test
