// SPDX-License-Identifier: Apache-2.0
// Tests the engine where links are shared and kernels slowed at run time: times worked out by hand, and properties of
// random programs.
#include "sim/engine/fluid_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "sim/engine/engine.h"
#include "tests/sim/engine/hand.h"
#include "tests/sim/random_program.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;
constexpr Lane second_comm{LaneKind::comm, 1};

/// Options of ports(), which returns a wiring in which every exchange uses only its sender's link. The link has
/// `capacity`, of which a single transfer uses `cap`.
struct PortOptions {
  double cap = 1.0;
  Duration latency{};
  double capacity = 1.0;
  std::uint32_t stages = 1;
};
std::shared_ptr<const Wiring> ports(const Program& program, const PortOptions& options) {
  Wiring wiring;
  wiring.ranks = static_cast<std::size_t>(program.mesh.ranks());
  for (const Op& op : program.ops) {
    const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[op.shape]);
    wiring.move_of_op.push_back(exchange != nullptr && exchange->sends && exchange->shift != 0 ? 0 : -1);
  }
  for (std::size_t rank = 0; rank < wiring.ranks; ++rank) {
    wiring.paths.push_back({options.latency, static_cast<std::uint32_t>(wiring.stages.size()), options.stages});
    for (std::uint32_t stage = 1; stage <= options.stages; ++stage) {
      wiring.stages.push_back({options.cap, static_cast<double>(stage) / options.stages,
                               static_cast<std::uint32_t>(wiring.links.size()), 1});
      wiring.links.push_back(static_cast<std::int32_t>(rank));
    }
  }
  wiring.capacity.assign(wiring.ranks, options.capacity);
  return std::make_shared<const Wiring>(std::move(wiring));
}

Fluid fluid_of(const Program& program, Costs costs, const PortOptions& options = {}) {
  return {.costs = std::move(costs), .speeds = {}, .wiring = ports(program, options)};
}

/// Returns costs with these durations, one per op, and no host costs.
Costs op_costs(std::vector<Duration> durations) {
  Costs costs{.duration = std::move(durations)};
  costs.issue.resize(costs.duration.size());
  return costs;
}

Timeline simulate(const std::shared_ptr<const Program>& program, const Fluid& fluid,
                  const EngineOptions& other_options = {}) {
  Recorder recorder(Recorder::Keep::timeline);
  EngineOptions options = other_options;
  options.fluid = &fluid;
  Engine{}.run(plan_of(lower(program)), fluid.costs, recorder, options);
  return recorder.timeline();
}

/// Returns spans ordered by rank, then by op.
std::vector<Span> spans_of(const Timeline& timeline) {
  std::vector<Span> spans;
  for (const OpSpan& span : timeline) {
    spans.emplace_back(span.start.time_since_epoch().count(), span.end.time_since_epoch().count());
  }
  return spans;
}

std::shared_ptr<const Program> built(Hand hand) {
  return std::make_shared<const Program>(std::move(hand.builder).build());
}

OpId pass_on_second_lane(Hand& hand, const std::vector<OpId>& waits = {}) {
  return hand.builder.exchange({.lane = second_comm, .send = hand.slot(2), .receive = hand.slot(3), .waits = waits});
}

TEST(FluidRun, TwoTransfersOnOneLinkTakeTwiceAsLong) {
  Hand hand(2);
  hand.pass_on(0, 1);
  pass_on_second_lane(hand);
  const auto program = built(std::move(hand));
  EXPECT_EQ(spans_of(simulate(program, fluid_of(*program, op_costs({10us, 10us})))),
            std::vector<Span>(4, {0, 20 * us}));
}

TEST(FluidRun, LatencyIsNotShared) {
  // 2 us of latency, then 8 us of work at half the rate.
  Hand hand(2);
  hand.pass_on(0, 1);
  pass_on_second_lane(hand);
  const auto program = built(std::move(hand));
  const Fluid fluid = fluid_of(*program, op_costs({10us, 10us}), {.latency = 2us});
  EXPECT_EQ(spans_of(simulate(program, fluid)), std::vector<Span>(4, {0, 18 * us}));
}

TEST(FluidRun, ATransferThatComesLaterSlowsTheFirstFromThenOn) {
  // The first transfer has the link to itself until 4 us; 6 us of its work are then left. At half the rate it ends at
  // 16 us. The second then has 4 us of work left.
  Hand hand(2);
  const OpId late = hand.work(0);
  hand.pass_on(0, 1);
  pass_on_second_lane(hand, {late});
  const auto program = built(std::move(hand));
  const std::vector<Span> spans = spans_of(simulate(program, fluid_of(*program, op_costs({4us, 10us, 10us}))));
  EXPECT_EQ(spans, (std::vector<Span>{
                       {0, 4 * us}, {0, 16 * us}, {4 * us, 20 * us}, {0, 4 * us}, {0, 16 * us}, {4 * us, 20 * us}}));
}

TEST(FluidRun, TransfersThatTogetherFitTheLinkDoNotDisturbEachOther) {
  Hand hand(2);
  hand.pass_on(0, 1);
  pass_on_second_lane(hand);
  const auto program = built(std::move(hand));
  const Fluid fluid = fluid_of(*program, op_costs({10us, 7us}), {.cap = 0.5});
  EXPECT_EQ(spans_of(simulate(program, fluid)),
            (std::vector<Span>{{0, 10 * us}, {0, 7 * us}, {0, 10 * us}, {0, 7 * us}}));
}

TEST(FluidRun, ThreeTransfersGetAThirdOfALinkEach) {
  // Each of the three transfers has 1/3 of the link until the shortest, of 3 us, ends at 9 us. The other two then have
  // 1/2 each, so the 3 us left of the 6 us take 6 us. The last 3 us of the 9 us have the whole link.
  Hand hand(2);
  hand.pass_on(0, 1);
  pass_on_second_lane(hand);
  hand.builder.exchange({.lane = {LaneKind::comm, 2}, .send = hand.slot(2), .receive = hand.slot(3)});
  const auto program = built(std::move(hand));
  const std::vector<Span> spans = spans_of(simulate(program, fluid_of(*program, op_costs({3us, 6us, 9us}))));
  EXPECT_EQ(spans,
            (std::vector<Span>{{0, 9 * us}, {0, 15 * us}, {0, 18 * us}, {0, 9 * us}, {0, 15 * us}, {0, 18 * us}}));
}

TEST(FluidRun, StagesFollowEachOther) {
  // Two hops over one link follow each other. A single transfer takes its usual time; two transfers have half the
  // speed.
  Hand single(2);
  single.pass_on(0, 1);
  const auto one_transfer = built(std::move(single));
  const PortOptions hops{.latency = 1us, .stages = 2};
  EXPECT_EQ(spans_of(simulate(one_transfer, fluid_of(*one_transfer, op_costs({7us}), hops))),
            std::vector<Span>(2, {0, 7 * us}));
  Hand pair(2);
  pair.pass_on(0, 1);
  pass_on_second_lane(pair);
  const auto two_transfers = built(std::move(pair));
  EXPECT_EQ(spans_of(simulate(two_transfers, fluid_of(*two_transfers, op_costs({7us, 7us}), hops))),
            std::vector<Span>(4, {0, 13 * us}));
}

TEST(FluidRun, ASlowedTransferLeavesItsShareToOneOnAnotherLink) {
  // Rank 0 sends to ranks 1, 2 and 3: A over a link of capacity 1/2, B over that link and one of capacity 1, C over the
  // link of capacity 1. A and B want 1/2, C wants 1. At first A and B have 1/4, half their speed, so C has 3/4. A, of 4
  // us, ends at 8 us. Then B has 1/2, so C, which has 4 us left, falls to 1/2 and ends at 16 us. B, of 20 us, has 16 us
  // left at 8 us and ends at 24 us.
  Hand hand(4);
  for (std::uint16_t lane = 0; lane < 3; ++lane) {
    hand.builder.exchange(
        {.lane = {LaneKind::comm, lane}, .shift = lane + 1, .send = hand.slot(0), .receive = hand.slot(1)});
  }
  const auto program = built(std::move(hand));
  Wiring wiring{.move_of_op = {0, 1, 2}, .links = {0, 0, 1, 1, 2}, .capacity = {0.5, 1.0, 100.0}, .ranks = 4};
  wiring.stages = {{.cap = 0.5, .first_link = 0, .links = 1},
                   {.cap = 0.5, .first_link = 1, .links = 2},
                   {.cap = 1.0, .first_link = 3, .links = 1},
                   {.cap = 1.0, .first_link = 4, .links = 1}};
  Costs costs = op_costs({4us, 20us, 10us});
  for (std::uint32_t move = 0; move < 3; ++move) {
    wiring.paths.push_back({.first_stage = move, .stages = 1});
    wiring.paths.insert(wiring.paths.end(), 3, {.first_stage = 3, .stages = 1});
  }
  costs.by_rank = costs.duration;
  costs.by_rank.insert(costs.by_rank.end(), 9, Duration{1us});
  const Fluid fluid{
      .costs = std::move(costs), .speeds = {}, .wiring = std::make_shared<const Wiring>(std::move(wiring))};
  const std::vector<Span> spans = spans_of(simulate(program, fluid));
  EXPECT_EQ((std::vector<Span>{spans[0], spans[1], spans[2]}),
            (std::vector<Span>{{0, 8 * us}, {0, 24 * us}, {0, 16 * us}}));
}

/// Returns a Fluid with these costs, in which kernels run at half their speed during exchanges, at a fifth during
/// collectives, and at a tenth during both.
Fluid slowing(const Program& program, Costs costs) {
  Fluid fluid = fluid_of(program, std::move(costs));
  fluid.speeds = {std::vector<double>{}, std::vector<double>(program.ops.size(), 0.5),
                  std::vector<double>(program.ops.size(), 0.2), std::vector<double>(program.ops.size(), 0.1)};
  return fluid;
}

TEST(FluidRun, AKernelIsSlowWhileAnExchangeHoldsSms) {
  // By 4 us the kernel has done 2 us of its work, so 8 us are left.
  Hand hand(2);
  hand.work(0);
  hand.pass_on(2, 3);
  const auto program = built(std::move(hand));
  const std::vector<Span> spans = spans_of(simulate(program, slowing(*program, op_costs({10us, 4us}))));
  EXPECT_EQ(spans, (std::vector<Span>{{0, 12 * us}, {0, 4 * us}, {0, 12 * us}, {0, 4 * us}}));
}

TEST(FluidRun, ACopyEngineTakesNoSms) {
  Hand hand(2);
  hand.work(0);
  hand.builder.exchange({.lane = {LaneKind::copy, 0}, .send = hand.slot(2), .receive = hand.slot(3)});
  const auto program = built(std::move(hand));
  const std::vector<Span> spans = spans_of(simulate(program, slowing(*program, op_costs({10us, 4us}))));
  EXPECT_EQ(spans, (std::vector<Span>{{0, 10 * us}, {0, 4 * us}, {0, 10 * us}, {0, 4 * us}}));
}

TEST(FluidRun, AnExchangeThatWaitsForItsPeerHoldsSmsToo) {
  // Rank 1 posts its exchange at 6 us, after its first work; rank 0 waits for it from the start. Rank 0 does 5 us of
  // its 10 us of work by 10 us, when the exchange ends, and the rest at full speed.
  Hand hand(2);
  const OpId late = hand.work(0);
  hand.work(1, {}, {LaneKind::aux, 0});
  hand.pass_on(2, 3, {late});
  Program program = std::move(hand.builder).build();
  program.ops[0].where = {Relation::equal, 0, 1};
  program.ops[1].where = {Relation::equal, 0, 0};
  const auto shared = std::make_shared<const Program>(std::move(program));
  const std::vector<Span> spans = spans_of(simulate(shared, slowing(*shared, op_costs({6us, 10us, 4us}))));
  EXPECT_EQ(spans, (std::vector<Span>{{0, 15 * us}, {6 * us, 10 * us}, {0, 6 * us}, {6 * us, 10 * us}}));
}

TEST(FluidRun, CollectivesSlowKernelsMoreAndBothTogetherMost) {
  // The exchange runs until 4 us, the collective until 20 us. By then 4 x 0.1 + 16 x 0.2 us of work are done; 6.4 us
  // are left.
  Hand hand(2);
  hand.work(0);
  hand.pass_on(2, 3);
  hand.builder.collective(
      {.lane = second_comm, .kind = CollectiveKind::all_reduce, .in = hand.slot(1), .out = hand.slot(1)});
  const auto program = built(std::move(hand));
  const std::vector<Span> spans = spans_of(simulate(program, slowing(*program, op_costs({10us, 4us, 20us}))));
  EXPECT_EQ(spans[0], (Span{0, 26'400'000}));
  EXPECT_EQ(spans[2], (Span{0, 20 * us}));
}

TEST(FluidRun, FreeCommunicationSlowsNothing) {
  Hand hand(2);
  hand.work(0);
  hand.pass_on(2, 3);
  const auto program = built(std::move(hand));
  const std::vector<Span> spans = spans_of(simulate(program, slowing(*program, op_costs({10us, 0us}))));
  EXPECT_EQ(spans[0], (Span{0, 10 * us}));
  EXPECT_EQ(spans[1], (Span{0, 0}));
}

/// Returns a random latency, below the durations of some ops and above those of others, and one to three stages.
PortOptions random_ports(std::mt19937_64& random) {
  return {.latency = Duration{below(random, 30)}, .stages = static_cast<std::uint32_t>(1 + below(random, 3))};
}

TEST(FluidRun, WithoutSharingEqualsThePlainRunToThePicosecond) {
  std::mt19937_64 random(11);
  Engine engine;
  Recorder plain(Recorder::Keep::timeline);
  for (int i = 0; i < 3'000; ++i) {
    const auto program = std::make_shared<const Program>(random_program(random));
    PortOptions wide = random_ports(random);
    wide.capacity = 8.0;
    const Fluid fluid = fluid_of(*program, random_costs(*program, random), wide);
    engine.run(plan_of(lower(program)), fluid.costs, plain);
    ASSERT_EQ(simulate(program, fluid), plain.timeline()) << "program " << i;
  }
}

Fluid random_fluid(const Program& program, std::mt19937_64& random) {
  PortOptions options = random_ports(random);
  options.cap = 0.7;
  Fluid fluid = fluid_of(program, random_costs(program, random), options);
  Wiring wiring = *fluid.wiring;  // Every stage also uses some of three links that all ranks share.
  const auto ranks = static_cast<std::int32_t>(wiring.ranks);
  for (const double capacity : {0.7, 1.1, 1.9}) {
    wiring.capacity.push_back(capacity);
  }
  std::vector<std::int32_t> links;
  for (WireStage& stage : wiring.stages) {
    const auto first = static_cast<std::uint32_t>(links.size());
    links.push_back(wiring.links[stage.first_link]);
    for (std::int32_t shared = ranks; shared < ranks + 3; ++shared) {
      if (one_in(random, 2)) {
        links.push_back(shared);
      }
    }
    stage.first_link = first;
    stage.links = static_cast<std::uint32_t>(links.size()) - first;
  }
  wiring.links = std::move(links);
  fluid.wiring = std::make_shared<const Wiring>(std::move(wiring));
  for (const std::size_t beside : {1U, 2U, 3U}) {
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      fluid.speeds[beside].push_back(static_cast<double>(1 + below(random, 10)) / 10.0);
    }
  }
  return fluid;
}

TEST(FluidRun, ShufflingSimultaneousEventsChangesNothing) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 1'000; ++i) {
    const auto program = std::make_shared<const Program>(random_program(random));
    const Fluid fluid = random_fluid(*program, random);
    const Timeline timeline = simulate(program, fluid);
    for (int seed = 0; seed < 3; ++seed) {
      ASSERT_EQ(simulate(program, fluid, {.shuffle_ties = random()}), timeline) << "program " << i;
    }
  }
}

TEST(FluidRun, SharingNeverMakesAnOpFaster) {
  std::mt19937_64 random(13);
  int slower = 0;
  Engine engine;
  Recorder plain;
  for (int i = 0; i < 1'000; ++i) {
    const auto program = std::make_shared<const Program>(random_program(random));
    const Fluid fluid = random_fluid(*program, random);
    std::int64_t last = 0;
    for (const OpSpan& span : simulate(program, fluid)) {
      const auto op = position(span.op);
      if (program->ops[op].kind == OpKind::elementwise) {
        EXPECT_GE(span.end - span.start, fluid.costs.of(span.rank, op));
      }
      last = std::max(last, span.end.time_since_epoch().count());
    }
    engine.run(plan_of(lower(program)), fluid.costs, plain);
    const std::int64_t undisturbed = plain.makespan().time_since_epoch().count();
    ASSERT_GE(last, undisturbed);
    slower += last > undisturbed ? 1 : 0;
  }
  EXPECT_GT(slower, 200);
}

}  // namespace
}  // namespace commfuse::test
