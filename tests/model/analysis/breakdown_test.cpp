// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/breakdown.h"

#include <gtest/gtest.h>

#include <chrono>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

Instant at(Duration time) { return Instant{time}; }

/// One rank whose ops have the given purposes and times.
struct OneRank {
  OneRank() { recorder.start(1); }
  OneRank& op(Purpose purpose, Duration start, Duration end) {
    recorder.record(0, OpId{0}, purpose, at(start), at(end));
    return *this;
  }
  [[nodiscard]] Breakdown breakdown(Duration compute, Duration priced) const {
    return breakdown_of(recorder.summary(0), {.unsliced = compute, .sliced = priced});
  }
  Recorder recorder;
};

TEST(Breakdown, EveryPartOfAMakespanIsNamed) {
  // communication  [0     6)      [10    18)        [20  24)
  // essential            [6    12)       [15     20)
  // local                        [12 13)            [20 21)
  OneRank rank;
  rank.op(Purpose::communication, 0us, 6us).op(Purpose::essential, 6us, 12us).op(Purpose::local, 12us, 13us);
  rank.op(Purpose::communication, 10us, 18us).op(Purpose::essential, 15us, 20us).op(Purpose::local, 20us, 21us);
  rank.op(Purpose::communication, 20us, 24us);
  const Breakdown parts = rank.breakdown(9us, 10us);
  EXPECT_EQ(parts.makespan, Duration{24us});
  EXPECT_EQ(parts.busy, Duration{11us});
  EXPECT_EQ(parts.head, Duration{6us});
  EXPECT_EQ(parts.bubble, Duration{3us});  // 12..15, including the local op 12..13
  EXPECT_EQ(parts.tail, Duration{4us});    // 20..24, including the local op 20..21
  EXPECT_EQ(parts.local, Duration{2us});
  EXPECT_EQ(parts.exposed, Duration{11us});  // 6 + 3 + 4 - 2
  EXPECT_EQ(parts.compute, Duration{9us});
  EXPECT_EQ(parts.slicing, Duration{1us});  // priced 10 minus 9
  EXPECT_EQ(parts.stretch, Duration{1us});  // busy 11 minus 10
}

TEST(Breakdown, LocalWorkUnderEssentialWorkCostsNothing) {
  OneRank rank;
  rank.op(Purpose::essential, 0us, 10us).op(Purpose::local, 2us, 4us);
  const Breakdown parts = rank.breakdown(10us, 10us);
  EXPECT_EQ(parts.local, Duration{0us});
  EXPECT_EQ(parts.exposed, Duration{0us});
}

TEST(Breakdown, StretchIsNegativeWhenComputeLanesOverlap) {
  // Two GEMMs of 10 us that overlap by 4 us keep the rank busy for 16 us.
  OneRank rank;
  rank.op(Purpose::essential, 0us, 10us).op(Purpose::essential, 6us, 16us);
  EXPECT_EQ(rank.breakdown(20us, 20us).stretch, Duration{-4us});
}

TEST(Breakdown, ARankWithoutEssentialWorkIsAllHead) {
  OneRank rank;
  rank.op(Purpose::communication, 1us, 8us);
  const Breakdown parts = rank.breakdown(0us, 0us);
  EXPECT_EQ(parts.head, Duration{8us});
  EXPECT_EQ(parts.bubble, Duration{0us});
  EXPECT_EQ(parts.tail, Duration{0us});
}

TEST(Analysis, TheCriticalRankEndsLastAndTheLowestWinsTies) {
  Program program;
  program.mesh = Mesh{{{"tp", 3}}};
  program.ops.push_back({});  // One essential op.
  Costs costs{.duration = {Duration{5us}}, .issue = {Duration{}}, .compute = 5us};
  Recorder recorder;
  recorder.start(3);
  recorder.record(0, OpId{0}, Purpose::essential, at(0us), at(5us));
  recorder.record(1, OpId{0}, Purpose::essential, at(2us), at(7us));
  recorder.record(2, OpId{0}, Purpose::essential, at(2us), at(7us));
  const Analysis analysis = analyse(program, costs, recorder);
  EXPECT_EQ(analysis.critical_rank, 1);
  EXPECT_EQ(analysis.critical.head, Duration{2us});
  EXPECT_EQ(analysis.max_exposed, Duration{2us});
  EXPECT_EQ(analysis.mean_exposed, Duration{1'333'333});  // (0 + 2 + 2) / 3 us, rounded down to a picosecond
}

TEST(Recorder, KeepsATimelineOnlyOnRequest) {
  Recorder summaries;
  Recorder timeline(Recorder::Keep::timeline);
  for (Recorder* recorder : {&summaries, &timeline}) {
    recorder->start(2);
    recorder->record(1, OpId{3}, Purpose::communication, at(1us), at(2us));
    recorder->record(0, OpId{4}, Purpose::communication, at(0us), at(3us));
  }
  EXPECT_TRUE(summaries.timeline().empty());
  const Timeline expected{{0, OpId{4}, at(0us), at(3us)}, {1, OpId{3}, at(1us), at(2us)}};
  EXPECT_EQ(timeline.timeline(), expected);
  EXPECT_EQ(summaries.makespan(), at(3us));
}

}  // namespace
}  // namespace commfuse
