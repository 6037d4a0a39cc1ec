// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/crossover.h"

#include <gtest/gtest.h>

#include <cmath>

namespace commfuse {
namespace {

constexpr VerdictRule rule{.difference = 0.02};

MapValue count(double value) { return {value, std::to_string(static_cast<int>(value))}; }

/// Returns an entry with a sequence length, a link rate in bytes per second and a number of ranks.
MapEntry entry(double seq, double link, double ranks, const char* strategy, std::int64_t time) {
  return {"a", {count(seq), {link, "x"}, count(1), count(ranks)}, strategy, Duration{time}};
}

MapEntry at_seq(double seq, const char* strategy, std::int64_t time) { return entry(seq, 1.0, 2.0, strategy, time); }

TEST(CrossoverMap, ACellHasTheSavingOverTheNextFamilyAndOverSerial) {
  const std::vector<MapEntry> entries{at_seq(1, "serial", 200), at_seq(1, "sliced", 120), at_seq(1, "sliced", 100),
                                      at_seq(1, "ring", 125),   at_seq(2, "serial", 100), at_seq(2, "ring", 101)};
  const CrossoverMap map = crossover_maps(entries, rule).at(0);
  ASSERT_EQ(map.cells.size(), 2U);
  EXPECT_EQ(map.cells[0].winner, "sliced");  // The faster of two schedules wins.
  EXPECT_EQ(map.cells[0].second, "ring");
  EXPECT_DOUBLE_EQ(*map.cells[0].saved, 0.2);
  EXPECT_DOUBLE_EQ(*map.cells[0].of_serial, 0.5);
  EXPECT_TRUE(map.cells[0].wins());
  EXPECT_EQ(map.cells[1].winner, "serial");
  EXPECT_DOUBLE_EQ(*map.cells[1].of_serial, 0.0);
  EXPECT_FALSE(map.cells[1].wins());
  EXPECT_EQ(map.strategies, (std::vector<std::string>{"serial", "sliced"}));
}

// Serial never counts as overlap, even where the framework's own step is the baseline.
TEST(CrossoverMap, TheFrameworksOwnStepIsTheBaseline) {
  std::vector<MapEntry> entries{at_seq(1, "serial", 100), at_seq(1, "fsdp", 90),    at_seq(1, "sliced", 81),
                                at_seq(2, "serial", 200), at_seq(2, "fsdp", 180),   at_seq(2, "sliced", 198),
                                at_seq(3, "serial", 300), at_seq(3, "sliced", 240), at_seq(4, "fsdp", 400)};
  for (MapEntry& each : entries) {
    each.is_framework = each.strategy == "fsdp";
  }
  const CrossoverMap map = crossover_maps(entries, rule).at(0);
  ASSERT_EQ(map.cells.size(), 4U);
  EXPECT_EQ(map.cells[0].baseline, "fsdp");
  EXPECT_NEAR(*map.cells[0].of_baseline, 0.1, 1e-12);
  ASSERT_TRUE(map.cells[0].saving && map.cells[1].saving && map.cells[2].saving);
  EXPECT_EQ(map.cells[0].saving->overlap, "sliced");
  EXPECT_EQ(map.cells[0].saving->baseline, "fsdp");
  EXPECT_NEAR(map.cells[0].saving->saved, 0.1, 1e-12);
  EXPECT_FALSE(map.cells[0].saving->is_close);
  EXPECT_EQ(map.cells[1].winner, "fsdp");
  EXPECT_NEAR(map.cells[1].saving->saved, -0.1, 1e-12);
  EXPECT_EQ(map.cells[2].saving->baseline, "serial");
  EXPECT_NEAR(map.cells[2].saving->saved, 0.2, 1e-12);
  EXPECT_FALSE(map.cells[3].saving) << "nothing overlaps there";
}

TEST(CrossoverMap, AnEntryWithoutATimeKeepsItsPlace) {
  std::vector<MapEntry> entries{at_seq(1, "serial", 0), at_seq(2, "serial", 100), at_seq(2, "sliced", 80)};
  EXPECT_TRUE(crossover_maps(entries, rule).empty()) << "one point with a result makes no map";
  entries.push_back(at_seq(4, "serial", 200));
  const CrossoverMap map = crossover_maps(entries, rule).at(0);
  EXPECT_EQ(map.values(MapAxis::seq).size(), 3U);
  EXPECT_EQ(map.cells.size(), 2U);
  EXPECT_EQ(map.at({}), nullptr);
}

TEST(CrossoverMap, TheCrossoverIsExactForPowerLaws) {
  // One family takes 1000 x seq, the other 8000 at every length. The times are equal at 8, which is halfway between 4
  // and 16 on a logarithmic scale.
  const std::vector<MapEntry> entries{at_seq(4, "linear", 4000), at_seq(4, "flat", 8000), at_seq(16, "linear", 16000),
                                      at_seq(16, "flat", 8000)};
  const CrossoverMap map = crossover_maps(entries, rule).at(0);
  ASSERT_EQ(map.crossings.size(), 1U);
  EXPECT_EQ(map.crossings[0].axis, MapAxis::seq);
  EXPECT_EQ(map.crossings[0].below, "linear");
  EXPECT_EQ(map.crossings[0].above, "flat");
  EXPECT_NEAR(*map.crossings[0].at, 8.0, 1e-12);
  EXPECT_TRUE(map.crossings[0].clear);
}

TEST(CrossoverMap, AFasterThirdFamilyInBetweenKeepsTheBracket) {
  const std::vector<MapEntry> entries{at_seq(4, "linear", 4000),   at_seq(4, "flat", 8000),  at_seq(4, "third", 4100),
                                      at_seq(16, "linear", 16000), at_seq(16, "flat", 8000), at_seq(16, "third", 8100)};
  const CrossoverMap map = crossover_maps(entries, rule).at(0);
  ASSERT_EQ(map.crossings.size(), 1U);
  EXPECT_FALSE(map.crossings[0].at.has_value());  // third takes sqrt(4100 x 8100) = 5763 where the other two take 8000
}

TEST(CrossoverMap, RanksAreNotInterpolatedAndAMissingRunHasNoLine) {
  const std::vector<MapEntry> entries{
      entry(1, 1, 2, "a", 100), entry(1, 1, 2, "b", 200), entry(1, 1, 4, "a", 100),
      entry(1, 1, 4, "b", 50),  entry(1, 1, 8, "c", 40),
  };
  const CrossoverMap map = crossover_maps(entries, rule).at(0);
  ASSERT_EQ(map.crossings.size(), 2U);
  EXPECT_EQ(map.crossings[0].axis, MapAxis::ranks);
  EXPECT_TRUE(map.crossings[0].clear);
  EXPECT_FALSE(map.crossings[0].at.has_value());
  EXPECT_EQ(map.crossings[1].above, "c");
  EXPECT_FALSE(map.crossings[1].clear);
}

TEST(CrossoverMap, AChangeBetweenCloseFamiliesIsNotClear) {
  const std::vector<MapEntry> entries{at_seq(1, "a", 1000), at_seq(1, "b", 1019), at_seq(2, "a", 2000),
                                      at_seq(2, "b", 1500)};
  EXPECT_FALSE(crossover_maps(entries, rule).at(0).crossings.at(0).clear);
  EXPECT_TRUE(crossover_maps(entries, {.difference = 0.01}).at(0).crossings.at(0).clear);
}

TEST(CrossoverMap, PlacesAreSortedAndChangesAreSearchedAlongEveryAxis) {
  // Two sequence lengths and two link rates; b wins only at the greater length on the faster link.
  std::vector<MapEntry> entries;
  for (const double seq : {2.0, 1.0}) {
    for (const double link : {200.0, 100.0}) {
      entries.push_back(entry(seq, link, 2, "a", 100));
      entries.push_back(entry(seq, link, 2, "b", seq * link == 400.0 ? 50 : 150));
    }
  }
  const CrossoverMap map = crossover_maps(entries, rule).at(0);
  ASSERT_EQ(map.cells.size(), 4U);
  EXPECT_EQ(map.cells[1].place, (MapPlace{1, 0, 0, 0}));
  EXPECT_EQ(map.cells[2].place, (MapPlace{0, 1, 0, 0}));
  ASSERT_EQ(map.crossings.size(), 2U);
  EXPECT_EQ(map.crossings[0].axis, MapAxis::seq);
  EXPECT_EQ(map.crossings[0].place, (MapPlace{0, 1, 0, 0}));
  EXPECT_EQ(map.crossings[1].axis, MapAxis::link);
  EXPECT_EQ(map.crossings[1].place, (MapPlace{1, 0, 0, 0}));
}

TEST(CrossoverMap, OnePointOrStrategyIsNotAMapAndSettingsAreSeparate) {
  EXPECT_TRUE(crossover_maps(std::vector{at_seq(1, "a", 1), at_seq(1, "b", 2)}, rule).empty());
  EXPECT_TRUE(crossover_maps(std::vector{at_seq(1, "a", 1), at_seq(2, "a", 2)}, rule).empty());
  std::vector<MapEntry> entries{at_seq(1, "a", 1), at_seq(2, "b", 2)};
  entries[1].setting = "other";
  EXPECT_TRUE(crossover_maps(entries, rule).empty());
}

}  // namespace
}  // namespace commfuse
