// SPDX-License-Identifier: Apache-2.0
// Tests slow ranks, late ranks, slow links and broken links against times computed by hand.
#include "sim/engine/faults.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "model/config_error.h"
#include "sim/engine/engine.h"
#include "tests/sim/engine/hand.h"
#include "tests/sim/message_of.h"
#include "tests/sim/random_program.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

Instant at(Duration since_start) { return Instant{since_start}; }

/// Returns links wide enough that transfers never share bandwidth; the fluid run must then equal the plain run.
Fluid wide_fluid(const Program& program, Costs costs) {
  Wiring wiring;
  wiring.ranks = static_cast<std::size_t>(program.mesh.ranks());
  for (const Op& op : program.ops) {
    const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[op.shape]);
    wiring.move_of_op.push_back(exchange != nullptr && exchange->sends && exchange->shift != 0 ? 0 : -1);
  }
  wiring.paths.assign(wiring.ranks, {.latency = Duration{5}, .stages = 1});
  wiring.stages = {{.cap = 1.0, .links = 1}};
  wiring.links = {0};
  wiring.capacity = {1e9};
  return {.costs = std::move(costs), .speeds = {}, .wiring = std::make_shared<const Wiring>(std::move(wiring))};
}

/// Runs a program with faults, with and without shared links; both timelines must be identical.
struct Faulty {
  std::shared_ptr<const Program> program;
  Recorder recorder{Recorder::Keep::timeline};

  Faulty(Program made, const Costs& costs, const Faults& faults)
      : program(std::make_shared<const Program>(std::move(made))) {
    const Plan plan = plan_of(lower(program));
    Engine engine;
    const Fluid fluid = wide_fluid(*program, costs);
    engine.run(plan, costs, recorder, {.fluid = &fluid, .faults = &faults});
    const Timeline shared = recorder.timeline();
    engine.run(plan, costs, recorder, {.faults = &faults});
    EXPECT_EQ(shared, recorder.timeline());
  }
  Faulty(const Program& made, const OpCosts& costs, const Faults& faults)
      : Faulty(made, costs_of(made, costs), faults) {}

  [[nodiscard]] Duration last_end(Rank rank) const { return recorder.summary(rank).last_end.time_since_epoch(); }
  [[nodiscard]] std::vector<Span> spans() const {
    std::vector<Span> spans;
    for (const OpSpan& span : recorder.timeline()) {
      spans.emplace_back(span.start.time_since_epoch().count(), span.end.time_since_epoch().count());
    }
    return spans;
  }
};

/// Returns a ring in which every rank runs `hops` exchanges in sequence (4 us each with relay_costs), and after each
/// exchange an elementwise op (10 us) that waits for it.
Program relay(std::int32_t ranks, int hops) {
  Hand hand(ranks);
  for (int i = 0; i < hops; ++i) {
    const OpId passed = hand.pass_on(0, 1);
    hand.work(2, {passed});
  }
  return std::move(hand.builder).build();
}
constexpr OpCosts relay_costs{.exchange = 4us, .elementwise = 10us};

TEST(Faults, AnEmptySetOfFaultsChangesNothing) {
  const Faulty faulty(relay(3, 2), relay_costs, {});
  EXPECT_EQ(faulty.last_end(0), Duration{24us});
}

TEST(Faults, ASlowRankDelaysOnlyItselfIfNoRankWaitsForItsWork) {
  // Two ops of 10 us follow the first exchange and take three times as long on rank 1.
  const Faulty faulty(relay(3, 2), relay_costs, {.slow_ranks = {{.rank = 1, .factor = 3.0}}});
  EXPECT_EQ(faulty.last_end(0), Duration{24us});
  EXPECT_EQ(faulty.last_end(1), Duration{64us});
  EXPECT_EQ(faulty.last_end(2), Duration{24us});
}

TEST(Faults, ASlowRankDelaysARingAsTheRecurrencePredicts) {
  // In each step a rank computes for 10 us, then passes its result on for 4 us; step s+1 computes when the result of
  // step s has arrived. An exchange ends when both its halves have ended, so a delay reaches both neighbours in the
  // same step. If rank 0 computes for 10 + d in each step, rank r ends step s at 14 s + d n, where
  // n = max(0, s - max(0, distance - 1)) is the number of rank 0's delays that have reached rank r.
  constexpr std::int32_t ranks = 6;
  constexpr int steps = 4;
  Hand hand(ranks);
  OpId passed = hand.work(0);
  passed = hand.pass_on(0, 1, {passed});
  for (int step = 1; step < steps; ++step) {
    passed = hand.pass_on(0, 1, {hand.work(0, {passed})});
  }
  const Faulty faulty(std::move(hand.builder).build(), relay_costs, {.slow_ranks = {{.rank = 0, .factor = 1.5}}});
  for (Rank rank = 0; rank < ranks; ++rank) {
    const int distance = std::min(rank, ranks - rank);
    EXPECT_EQ(faulty.last_end(rank), 14us * steps + 5us * std::max(0, steps - std::max(0, distance - 1))) << rank;
  }
}

TEST(Faults, FactorsOfOneRankMultiply) {
  const Faulty faulty(relay(2, 1), relay_costs,
                      {.slow_ranks = {{.rank = 1, .factor = 2.0}, {.rank = 1, .factor = 1.5}}});
  EXPECT_EQ(faulty.last_end(1), Duration{34us});
}

TEST(Faults, ASlowLinkDelaysOnlyItsDirection) {
  // The transfer 0 -> 1 takes 12 us and occupies a lane on both ranks until then; 2 -> 0 and 1 -> 2 take 4 us.
  const Faulty faulty(relay(3, 1), relay_costs, {.slow_links = {{.link = {0, 1}, .factor = 3.0}}});
  EXPECT_EQ(faulty.spans(),
            (std::vector<Span>{
                {0, 12 * us}, {12 * us, 22 * us}, {0, 12 * us}, {12 * us, 22 * us}, {0, 4 * us}, {4 * us, 14 * us}}));
}

TEST(Faults, ATransferResumesWhereItStoppedWhenItsLinkComesUpAgain) {
  // Link 0 -> 1 is down from 1 us to 6 us: 1 us of the transfer's 4 us runs before the outage, 3 us after it.
  const Faulty faulty(relay(3, 1), relay_costs, {.links_down = {{.link = {0, 1}, .from = at(1us), .until = at(6us)}}});
  EXPECT_EQ(faulty.spans()[0], (Span{0, 9 * us}));
  EXPECT_EQ(faulty.spans()[2], (Span{0, 9 * us}));
  EXPECT_EQ(faulty.spans()[4], (Span{0, 4 * us}));
}

/// Expects that these faults make hour-long ops on three ranks too long for exact times, with and without shared links.
void expect_too_long(const Faults& faults) {
  const Program program = relay(3, 1);
  const OpCosts hour_long{.exchange = 1h, .elementwise = 1h};
  const Plan plan = plan_of(lower(std::make_shared<const Program>(program)));
  const Costs costs = costs_of(program, hour_long);
  const Fluid fluid = wide_fluid(program, costs);
  for (const Fluid* shared : {static_cast<const Fluid*>(nullptr), &fluid}) {
    Recorder recorder(Recorder::Keep::timeline);
    EXPECT_THROW(Engine{}.run(plan, costs, recorder, {.fluid = shared, .faults = &faults}), ConfigError);
  }
}

TEST(Faults, FaultsThatMakeARunTooLongForExactTimesAreRefused) {
  expect_too_long({.slow_ranks = {{.rank = 1, .factor = 3.0}}});
  expect_too_long({.slow_ranks = {{.rank = 1, .factor = 1e6}}});
  expect_too_long({.slow_ranks = std::vector<Faults::SlowRank>(60, {.rank = 1, .factor = 1e6})});
  expect_too_long({.slow_links = {{.link = {0, 1}, .factor = 1e6}}});
  expect_too_long({.slow_links = std::vector<Faults::SlowLink>(60, {.link = {0, 1}, .factor = 1e6})});
  expect_too_long({.late_starts = {{.rank = 1, .by = 3h}}});
  expect_too_long({.late_starts = std::vector<Faults::LateStart>(60, {.rank = 1, .by = 2000h})});
  expect_too_long({.links_down = {{.link = {0, 1}, .from = at(0s), .until = at(3h)}}});
  expect_too_long({.links_down = {{.link = {0, 1}, .from = at(0s), .until = Instant::max()}}});
}

TEST(Faults, OutagesAfterTheRunHaveNoEffect) {
  const Faulty faulty(relay(3, 1), relay_costs,
                      {.links_down = {{.link = {0, 1}, .from = at(3h), .until = Instant::max()},
                                      {.link = {1, 2}, .from = Instant::max()}}});
  EXPECT_EQ(faulty.last_end(0), Duration{14us});
}

TEST(Faults, ATransferThatFindsItsLinkDownWaits) {
  const Faulty faulty(relay(3, 1), relay_costs, {.links_down = {{.link = {0, 1}, .from = at(0us), .until = at(6us)}}});
  EXPECT_EQ(faulty.spans()[0], (Span{0, 10 * us}));
}

TEST(Faults, OverlappingOutagesOfALinkCountOnceAndSeparateOnesAddUp) {
  // The link is down at 1-3, 2-5 and 6-7 us. Of the transfer's 4 us, 1 runs before the outages, 1 between them and 2
  // after them, so it ends at 9 us.
  const Faulty faulty(relay(2, 1), relay_costs,
                      {.links_down = {{.link = {0, 1}, .from = at(2us), .until = at(5us)},
                                      {.link = {0, 1}, .from = at(6us), .until = at(7us)},
                                      {.link = {0, 1}, .from = at(1us), .until = at(3us)}}});
  EXPECT_EQ(faulty.spans()[0], (Span{0, 9 * us}));
}

TEST(Faults, AnOutageBeforeOrAfterATransferDoesNotDelayIt) {
  const Faulty faulty(relay(2, 1), relay_costs,
                      {.links_down = {{.link = {0, 1}, .from = at(4us), .until = at(5us)},
                                      {.link = {1, 0}, .from = at(30us), .until = std::nullopt}}});
  EXPECT_EQ(faulty.spans()[0], (Span{0, 4 * us}));
}

TEST(Faults, ARankThatStartsLateDelaysItsNeighbours) {
  // Rank 1 issues its exchange at 7 us; rank 2's receive half waits for rank 1, its send half does not.
  const Faulty faulty(relay(3, 1), relay_costs, {.late_starts = {{.rank = 1, .by = 7us}}});
  EXPECT_EQ(
      faulty.spans(),
      (std::vector<Span>{
          {0, 11 * us}, {11 * us, 21 * us}, {7 * us, 11 * us}, {11 * us, 21 * us}, {0, 11 * us}, {11 * us, 21 * us}}));
}

TEST(Faults, PlainAndFluidRunsOfRandomProgramsAgree) {
  std::mt19937_64 random(21);
  for (int i = 0; i < 1'000; ++i) {
    Program program = random_program(random);
    const Costs costs = random_costs(program, random);
    const Rank ranks = program.mesh.ranks();
    const auto rank = [&] { return static_cast<Rank>(below(random, ranks)); };
    const auto factor = [&] { return 1.0 + static_cast<double>(below(random, 20)) / 10.0; };
    Faults faults;
    faults.slow_ranks.push_back({rank(), factor()});
    faults.late_starts.push_back({rank(), Duration{below(random, 20)}});
    for (std::int64_t pairs = ranks > 1 ? below(random, 4) : 0; pairs > 0; --pairs) {
      const Rank from = rank();
      const RankPair link{from, (from + 1 + static_cast<Rank>(below(random, ranks - 1))) % ranks};
      const std::int64_t down = below(random, 30);
      faults.slow_links.push_back({link, factor()});
      faults.links_down.push_back({link, Instant{Duration{down}}, Instant{Duration{down + 1 + below(random, 30)}}});
    }
    const Faulty faulty(std::move(program), costs, faults);
    ASSERT_FALSE(HasFailure()) << "program " << i;
  }
}

std::string refusal_of(const Faults& faults) {
  return message_of([&] { const Faulty faulty(relay(2, 1), relay_costs, faults); });
}

TEST(Faults, ALinkThatStaysDownEndsTheRunWithAMessage) {
  EXPECT_EQ(refusal_of({.links_down = {{.link = {0, 1}, .from = at(1us), .until = std::nullopt}}}),
            "rank 0 never finishes op 0 (exchange), because the link from rank 0 to rank 1 stays down; add the time at "
            "which it comes up");
}

TEST(Faults, APlainRunNamesTheOpThatTheBrokenLinkStops) {
  // Rank 2 has ended its first exchange and sends to rank 0, which never reaches the second exchange.
  const auto program = std::make_shared<const Program>(relay(3, 2));
  Recorder recorder;
  const Faults faults{.links_down = {{.link = {0, 1}, .from = at(1us), .until = std::nullopt},
                                     {.link = {2, 0}, .from = at(5us), .until = std::nullopt}}};
  try {
    Engine{}.run(plan_of(lower(program)), costs_of(*program, relay_costs), recorder, {.faults = &faults});
    FAIL() << "the run ended";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "rank 0 never finishes op 0 (exchange), because the link from rank 0 to rank 1 stays down; add the "
                 "time at which it comes up");
  }
}

TEST(Faults, ImpossibleFaultsAreRefused) {
  EXPECT_THROW(require_possible({.slow_ranks = {{.rank = 5}}}, 1), ConfigError);
  try {
    require_possible({.slow_ranks = {{.rank = 5}}}, 1);
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "a fault names rank 5, but there is only rank 0; use rank 0, or more ranks");
  }
  EXPECT_EQ(refusal_of({.slow_ranks = {{.rank = 2}}}),
            "a fault names rank 2, but there are 2 ranks; choose one from 0 to 1");
  EXPECT_EQ(refusal_of({.slow_ranks = {{.rank = 0, .factor = 0.5}}}),
            "a fault has a factor of 0.5; choose one from 1 to 1000000");
  EXPECT_EQ(refusal_of({.slow_links = {{.link = {1, 1}}}}),
            "a fault names a link from rank 1 to itself; choose two different ranks");
  EXPECT_EQ(
      refusal_of({.links_down = {{.link = {0, 1}, .from = at(2us), .until = at(2us)}}}),
      "the link from rank 0 to rank 1 comes up before it goes down; choose an end after its start, both at least 0");
  EXPECT_EQ(refusal_of({.late_starts = {{.rank = 0, .by = -1us}}}),
            "rank 0 has a negative late start; choose 0 or more");
}

}  // namespace
}  // namespace commfuse::test
