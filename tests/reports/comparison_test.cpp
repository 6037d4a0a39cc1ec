// SPDX-License-Identifier: Apache-2.0
#include "reports/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/record/model_version.h"
#include "model/record/result.h"
#include "reports/crossover.h"
#include "reports/point_rows.h"
#include "reports/rows.h"

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;

ResultRow row(const char* strategy, const char* parameters, Duration makespan, std::int64_t seq = 32768) {
  ResultRow row;
  row.model = "llama-3.1-70b";
  row.hardware = "h100-sxm";
  row.scope = "mlp";
  row.ranks = 8;
  row.batch = 1;
  row.seq = seq;
  row.dtype = "bf16";
  row.strategy = strategy;
  row.parameters = parameters;
  row.analysis.critical.makespan = makespan;
  row.analysis.critical.compute = 900us;
  row.analysis.critical.exposed = makespan - 900us;
  row.analysis.critical.tail = makespan - 900us;
  row.mfu = 0.5;
  return row;
}

constexpr const char* unknown = ", probability unknown (--uncertainty off)";

TEST(Comparison, TheWinnerIsNamedWithItsSaving) {
  // 1000 us against 1250 and 2000 us: 20% and 50% less time.
  const std::vector rows{row("serial", "", 2000us), row("sliced", "k=4", 1250us), row("commfuse", "ring", 1000us)};
  EXPECT_EQ(verdict(rows),
            fmt::format("commfuse wins{}: 20.0% less time than sliced, 50.0% less time than serial.", unknown));
}

ResultRow implemented(const char* name, Duration makespan, double beats_serial) {
  ResultRow kernel_row = row(name, "", makespan);
  kernel_row.implements = "fused_kernel";
  kernel_row.beats_serial = beats_serial;
  return kernel_row;
}

TEST(Comparison, TheRecommendedImplementationIsTheFastestThatClearlyPays) {
  const ResultRow serial = row("serial", "", 1000us);
  const ResultRow unsure = implemented("triton_distributed", 880us, 0.69);
  EXPECT_EQ(verdict(std::vector{serial, unsure, implemented("flux", 900us, 0.86)}),
            "Overlap pays: 10.0% less time than serial (86% sure) with flux, the fastest implementation with a clear "
            "win (triton_distributed may take less).");
  // A gain of 1% is a tie, however certain, so no schedule clearly pays.
  EXPECT_EQ(verdict(std::vector{serial, unsure, implemented("flux", 990us, 0.99)}),
            "Too close to call: 12.0% less time than serial (69% sure) with triton_distributed, the fastest "
            "implementation.");
  EXPECT_EQ(verdict(std::vector{serial, implemented("flux", 900us, 0.86)}),
            "Overlap pays: 10.0% less time than serial (86% sure) with flux.");
  EXPECT_EQ(verdict(std::vector{serial, implemented("flux", 1100us, 0.14)}),
            "Overlap does not pay: 10.0% more time than serial (86% sure) with flux.");
}

TEST(Comparison, AnImplementationThatOverlapsNothingDoesNotCountAsOverlap) {
  ResultRow in_switch = implemented("torch_multimem", 800us, 0.97);
  in_switch.implements = "serial";
  const ResultRow serial = row("serial", "", 1000us);
  EXPECT_EQ(verdict(std::vector{serial, in_switch, implemented("tokenweave", 1350us, 0.02)}),
            "Overlap does not pay: 35.0% more time than serial (98% sure) with tokenweave, the fastest implementation "
            "that overlaps. torch_multimem, which overlaps nothing, takes 20.0% less time than serial (97% sure).");
  EXPECT_EQ(verdict(std::vector{serial, in_switch, implemented("tokenweave", 900us, 0.9)}),
            "Overlap pays: 10.0% less time than serial (90% sure) with tokenweave, the fastest implementation that "
            "overlaps. torch_multimem, which overlaps nothing, takes 20.0% less time than serial (97% sure).");
  EXPECT_EQ(verdict(std::vector{serial, in_switch, implemented("tokenweave", 700us, 0.9)}),
            "Overlap pays: 30.0% less time than serial (90% sure) with tokenweave, the fastest implementation.");
  // Neither implementation beats serial.
  in_switch.analysis.critical.makespan = 1100us;
  EXPECT_EQ(verdict(std::vector{serial, in_switch, implemented("tokenweave", 1350us, 0.02)}),
            "Overlap does not pay: 35.0% more time than serial (98% sure) with tokenweave, the fastest implementation "
            "that overlaps.");
  // Without an implementation that overlaps, the question is which row is the fastest.
  in_switch.analysis.critical.makespan = 800us;
  EXPECT_EQ(verdict(std::vector{serial, in_switch}),
            fmt::format("torch_multimem wins{}: 20.0% less time than serial.", unknown));
}

TEST(Comparison, TheCostsOfAnImplementationArePartsOfASentence) {
  ResultRow flux = implemented("flux", 900us, 0.86);
  flux.held_back = "its transfers 83 us, its GEMM 21 us, the cost of its calls 9 us";
  const std::string lead = "Overlap pays: 10.0% less time than serial (86% sure) with flux. flux loses time to ";
  EXPECT_EQ(verdict(std::vector{row("serial", "", 1000us), flux}),
            lead + "its transfers (83 us), its GEMM (21 us) and the cost of its calls (9 us).");
  flux.held_back = "its GEMM 282 us";
  EXPECT_EQ(verdict(std::vector{row("serial", "", 1000us), flux}), lead + "its GEMM (282 us).");
}

TEST(Comparison, AnEqualTimeIsNotNegative) {
  EXPECT_EQ(verdict(std::vector{row("serial", "", 1000us), implemented("flux", 1000us, 0.5)}),
            "Too close to call: 0.0% more time than serial (50% sure) with flux.");
}

// The time is 10% lower. Its 90% interval extends 1.867 standard errors of 0.1 to either side: from 900 us / e^0.187 to
// 900 us x e^0.187.
TEST(Comparison, TheSavingHasAnInterval) {
  ResultRow flux = implemented("flux", 900us, 0.86);
  flux.saving_error = 0.1;
  EXPECT_EQ(verdict(std::vector{row("serial", "", 1000us), flux}),
            "Overlap pays: 10.0% less time than serial (90% interval -8 to 25%; 86% sure) with flux.");
  ResultRow slow = implemented("flux", 1100us, 0.14);
  slow.saving_error = 0.1;
  EXPECT_EQ(verdict(std::vector{row("serial", "", 1000us), slow}),
            "Overlap does not pay: 10.0% more time than serial (90% interval -9 to 33%; 86% sure) with flux.");
}

TEST(Comparison, TheWinnerStatesItsProbability) {
  std::vector rows{row("serial", "", 2000us), row("commfuse", "ring", 1000us)};
  rows[0].makespan_error = 0.041;
  rows[1].makespan_error = 0.0632;
  rows[0].win_probability = 0.088;
  rows[1].win_probability = 0.912;
  EXPECT_EQ(verdict(rows), "commfuse wins (91% sure): 50.0% less time than serial.");
  EXPECT_NE(comparison_table(rows).find("\n  serial                      2000.0  4.1%         -"), std::string::npos)
      << comparison_table(rows);
  rows[0].win_probability = 0.003;
  EXPECT_EQ(verdict(rows), "commfuse wins (over 99% sure): 50.0% less time than serial.");
}

TEST(Comparison, ACloseProbabilityIsATie) {
  std::vector rows{row("serial", "", 2000us), row("sliced", "k=4", 1000us), row("commfuse", "ring", 1031us)};
  for (const auto& [row_index, probability] : {std::pair(0, 0.01), std::pair(1, 0.57), std::pair(2, 0.43)}) {
    rows[static_cast<std::size_t>(row_index)].makespan_error = 0.05;
    rows[static_cast<std::size_t>(row_index)].win_probability = probability;
  }
  EXPECT_EQ(
      verdict(rows),
      "Tie: sliced and commfuse are within 3.1%; sliced is the fastest with a probability of 57%, and a win needs "
      "80%.");
  EXPECT_EQ(verdict(rows, {.difference = 0.02, .probability = 0.55}),
            "sliced wins (57% sure): 3.0% less time than commfuse, 50.0% less time than serial.");
}

TEST(Comparison, MatchesTheWorkedExampleOfTheMetricsPage) {
  std::vector rows{row("commfuse", "ring", 1000us), row("sliced", "k=4", 1030us), row("async_tp", "", 1015us),
                   row("serial", "", 1300us)};
  const std::vector<double> slower{0.0, 0.79, 0.96, 0.999};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].makespan_error = 0.05;
    rows[i].win_probability = 1.0 - slower[i];
  }
  EXPECT_EQ(
      verdict(rows),
      "Tie: commfuse, async_tp and sliced are within 3.0%; commfuse is the fastest with a probability of 79%, and "
      "a win needs 80%.");
  EXPECT_EQ(verdict(rows, {.difference = 0.02, .probability = 0.75}), "Tie: commfuse and async_tp are within 1.5%.");
}

TEST(Comparison, StrategiesOnAnAxisAreComparedWithEachOther) {
  // An axis over strategies leaves the rows in this order: all rows of one strategy, then all of the other.
  std::vector rows{row("serial", "", 2000us), row("serial", "", 3000us, 65536), row("commfuse", "ring", 1000us),
                   row("commfuse", "ring", 2990us, 65536)};
  for (ResultRow& uncertain : rows) {
    uncertain.makespan_error = 0.03;
  }
  const std::vector<ResultRow> ordered = ordered_by_point(rows);
  EXPECT_EQ(ordered[1].strategy, "commfuse");
  EXPECT_EQ(ordered[1].seq, 32768);
  EXPECT_EQ(
      summary(ordered),
      "Of 2 points, commfuse wins 1, 1 tie (commfuse and serial 1). A win needs more\nthan 2% and a probability of "
      "80%.\n");
  // ln 2 over sqrt(2) x 3%: 16 standard errors.
  EXPECT_EQ(verdict(std::span(ordered).first(2)), "commfuse wins (over 99% sure): 50.0% less time than serial.");
}

TEST(Comparison, RowsAreGroupedByPointInTheirOrder) {
  std::mt19937 dice(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ResultRow> rows;
    for (int i = 0; i < 20; ++i) {
      rows.push_back(row("serial", "", 1us, 1024 << dice() % 6));
      rows.back().parameters = std::to_string(i);
    }
    std::vector<ResultRow> expected;
    for (const std::size_t index : order_by_point(rows)) {
      expected.push_back(rows[index]);
    }
    const std::vector<ResultRow> ordered = ordered_by_point(rows);
    ASSERT_EQ(ordered.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(ordered[i].parameters, expected[i].parameters);
    }
  }
}

TEST(Comparison, JsonHasTheVerdictOfEveryRow) {
  std::vector rows{
      row("serial", "", 2000us),      row("serial", "", 3000us, 65536),       row("commfuse", "ring", 1000us),
      row("fused_kernel", "", 900us), row("commfuse", "ring", 2990us, 65536), row("serial", "", 1us, 4096)};
  rows[3].bound = true;
  EXPECT_EQ(verdict_words(rows, {}), (std::vector<std::string>{"loses", "ties", "wins", "bound", "ties", ""}));
  const std::string text = to_json_lines(rows, verdict_words(rows, {}));
  EXPECT_NE(text.find(",\"verdict\":\"loses\"}\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(",\"verdict\":null}\n")) << text;
}

TEST(Comparison, RowsWithDifferentSettingsAreNotCompared) {
  std::vector rows{row("serial", "", 2000us), row("commfuse", "ring", 1000us)};
  rows[1].interference = "dynamic";
  EXPECT_EQ(rows_by_point(rows).size(), 2U);
  rows[1] = row("commfuse", "ring", 1000us);
  rows[1].faults = "slow-rank";
  EXPECT_EQ(rows_by_point(rows).size(), 2U);
}

TEST(Comparison, ADuplicateScheduleDoesNotTieWithItself) {
  const std::vector rows{row("serial", "", 2000us), row("commfuse", "ring", 1000us), row("commfuse", "ring", 1000us)};
  EXPECT_EQ(verdict(rows), fmt::format("commfuse (ring) wins{}: 50.0% less time than serial.", unknown));
}

TEST(Comparison, ALongHeadingIsWrapped) {
  std::vector rows{row("serial", "", 1000us)};
  rows[0].model = "llama-3.1-405b";
  rows[0].scope = "out_proj_backward";
  rows[0].hardware = "dgx-h100-x2";
  rows[0].link_bandwidth = "1200GB/s";
  rows[0].network_bandwidth = "400Gbit/s";
  EXPECT_TRUE(
      comparison_table(rows).starts_with("llama-3.1-405b out_proj_backward on dgx-h100-x2, links 1200GB/s, network\n"
                                         "  400Gbit/s, batch 1, bf16\n"))
      << comparison_table(rows);
}

TEST(Maps, LongLabelsWidenTheirColumn) {
  std::vector<ResultRow> rows;
  for (const auto& [text, rate] : {std::pair("100Gbit/s", 12.5e9), std::pair("200Gbit/s", 25e9)}) {
    for (const ResultRow& base : {row("serial", "", 1000us, 1024), row("commfuse", "", 900us, 1024)}) {
      rows.push_back(base);
      rows.back().network_bandwidth = text;
      rows.back().network_rate = rate;
    }
  }
  const std::string text = map_text(maps_of(std::span<const ResultRow>(rows)));
  EXPECT_NE(text.find("\n                      seq 1K\n"
                      "network 100Gbit/s   co 10/10\n"
                      "network 200Gbit/s   co 10/10\n"),
            std::string::npos)
      << text;
}

TEST(Maps, CsvQuotesNamesWithCommas) {
  const std::vector rows{row("serial", "", 1000us, 1024), row("my, flux", "", 500us, 1024),
                         row("serial", "", 1000us, 2048), row("my, flux", "", 2000us, 2048)};
  const std::vector<CrossoverMap> maps = maps_of(std::span<const ResultRow>(rows));
  EXPECT_NE(map_csv(maps).find(",\"my, flux\",500,serial,0.5,"), std::string::npos) << map_csv(maps);
  EXPECT_NE(map_csv(maps).find(",serial,1000,\"my, flux\",0.5,"), std::string::npos) << map_csv(maps);
  EXPECT_NE(crossings_csv(maps).find(",seq,2048,\"my, flux\",serial,"), std::string::npos) << crossings_csv(maps);
}

TEST(Maps, CrossingsOfCountsHaveDigitsInCsvAndJson) {
  const std::vector rows{row("serial", "", 1000us, 1024), row("commfuse", "ring", 500us, 1024),
                         row("serial", "", 1000us, 2048), row("commfuse", "ring", 2000us, 2048)};
  const std::vector<CrossoverMap> maps = maps_of(std::span<const ResultRow>(rows));
  // The ratio of the times is 1 at the geometric mean of both lengths: sqrt(1024 x 2048) = 1448.2.
  EXPECT_NE(crossings_csv(maps).find(",seq,2048,commfuse,serial,1448,"), std::string::npos) << crossings_csv(maps);
  EXPECT_NE(map_json(maps, {}).find("\"at\": 1448,"), std::string::npos) << map_json(maps, {});
}

TEST(Maps, LargeValuesHaveNoExponent) {
  const auto value_at = [](MapValue below, double at) {
    CrossoverMap map;
    map.axes[static_cast<std::size_t>(MapAxis::link)] = {std::move(below), {4e12, "4TB/s"}};
    return crossing_value(map, {.axis = MapAxis::link, .at = at});
  };
  EXPECT_EQ(value_at({900e9, "900GB/s"}, 1234e9), "1234 GB/s");
  EXPECT_EQ(value_at({30e9, "30GB/s"}, 37.54e9), "37.5 GB/s");
  EXPECT_EQ(value_at({1e9, "x1"}, 123e9), "x123");
  EXPECT_EQ(value_at({1e9, "x1"}, 1.54e9), "x1.5");
  const Scaling scaling{.setting = "a",
                        .fewest_ranks = {.ranks = 8, .seq = 1024},
                        .max_ranks = {.ranks = 16384, .seq = 1024},
                        .efficiency = 0.5};
  EXPECT_EQ(scaling_text({&scaling, 1}),
            "Strong scaling: the work is fixed. From 8 to 16384 ranks, 100% is 2048 times the\n"
            "speed:\n"
            "  a: seq 1K 50%\n");
}

TEST(Comparison, SizesBeyondTheFitAreReportedOncePerPoint) {
  std::vector rows{row("serial", "", 2000us), row("commfuse", "ring", 1000us)};
  rows[0].warnings = "m 128K: GEMMs were measured up to 16K";
  rows[1].warnings = "ranks 5: collectives were measured up to 4; m 128K: GEMMs were measured up to 16K";
  const std::string table = comparison_table(rows);
  EXPECT_TRUE(
      table.ends_with("  commfuse wins, probability unknown (--uncertainty off): 50.0% less time than\n"
                      "  serial.\n"
                      "  Beyond the fit: m 128K: GEMMs were measured up to 16K; ranks 5: collectives\n"
                      "  were measured up to 4.\n"))
      << table;
}

TEST(Comparison, NoStrategyWinsByTwoPercentOrLess) {
  const std::vector rows{row("serial", "", 2000us), row("sliced", "k=4", 1019us), row("commfuse", "ring", 1000us)};
  EXPECT_EQ(verdict(rows), "Tie: commfuse and sliced are within 1.9%.");
  const std::vector distant_rows{row("sliced", "k=4", 1021us), row("commfuse", "ring", 1000us)};
  EXPECT_EQ(verdict(distant_rows), fmt::format("commfuse wins{}: 2.1% less time than sliced.", unknown));
}

TEST(Comparison, NamesTheNextTwoAndTheSlowestOfMany) {
  const std::vector rows{row("serial", "", 2000us), row("sliced", "k=4", 1250us), row("commfuse", "ring", 1000us),
                         row("async_tp", "", 1600us), row("looped_einsum", "", 1040us)};
  EXPECT_EQ(
      verdict(rows),
      fmt::format("commfuse wins{}: 3.8% less time than looped_einsum, 20.0% less time than sliced and 50.0% less "
                  "time than the slowest, serial.",
                  unknown));
}

TEST(Comparison, ABoundIsShownButNeverWins) {
  std::vector rows{row("serial", "", 2000us), row("commfuse", "ring", 1000us), row("fused_kernel", "bound", 900us)};
  rows.back().bound = true;
  EXPECT_EQ(verdict(rows), fmt::format("commfuse wins{}: 50.0% less time than serial. fused_kernel (bound) takes 10.0% "
                                       "less than commfuse.",
                                       unknown));
  EXPECT_NE(comparison_table(rows).find("\n> commfuse (ring) "), std::string::npos);
  EXPECT_NE(comparison_table(rows).find("\n  fused_kernel (bound) "), std::string::npos);
  rows.back().analysis.critical.makespan = 1100us;
  EXPECT_EQ(verdict(rows), fmt::format("commfuse wins{}: 50.0% less time than serial.", unknown));
  rows.back().analysis.critical.makespan = 900us;
  rows[0].analysis.critical.makespan = 1010us;
  EXPECT_EQ(verdict(rows),
            "Tie: commfuse and serial are within 1.0%. fused_kernel (bound) takes 10.0% less than commfuse.");
  std::vector attention_rows = rows;
  for (ResultRow& attention_row : attention_rows) {
    attention_row.scope = "attention";
  }
  EXPECT_EQ(verdict(attention_rows), "Tie: commfuse and serial are within 1.0%.");
  EXPECT_NE(comparison_table(attention_rows).find("\n  fused_kernel (no bound) "), std::string::npos);
  const std::vector bound_only{rows.back()};
  EXPECT_EQ(verdict(bound_only), "fused_kernel (bound) takes 900.0 us.");
  std::vector two_points = rows;
  for (const ResultRow& copied : rows) {
    two_points.push_back(copied);
    two_points.back().seq = 65536;
  }
  two_points[3].analysis.critical.makespan = two_points[0].analysis.critical.makespan = 2000us;
  EXPECT_EQ(summary(two_points),
            "Of 2 points, commfuse wins 2, 0 tie. A win needs more than 2% and a probability\nof 80%.\n");
}

TEST(Comparison, TheTableReadsTopDownPointByPoint) {
  const std::vector rows{row("serial", "", 2000us), row("commfuse", "ring", 1000us), row("serial", "", 20ms, 131072),
                         row("commfuse", "direct, 4 lanes", 15ms, 131072)};
  EXPECT_EQ(comparison_table(rows),
            "llama-3.1-70b mlp on h100-sxm, batch 1, bf16\n"
            "\n"
            "ranks 8, seq 32K             time/us     \u00b1 vs serial  exposed    MFU\n"
            "  serial                      2000.0     -         -   1100.0  50.0%\n"
            "> commfuse (ring)             1000.0     -    -50.0%    100.0  50.0%\n"
            "  commfuse wins, probability unknown (--uncertainty off): 50.0% less time than\n"
            "  serial.\n"
            "\n"
            "ranks 8, seq 128K            time/ms     \u00b1 vs serial  exposed    MFU\n"
            "  serial                      20.000     -         -   19.100  50.0%\n"
            "> commfuse (direct, 4 lanes)  15.000     -    -25.0%   14.100  50.0%\n"
            "  commfuse wins, probability unknown (--uncertainty off): 25.0% less time than\n"
            "  serial.\n");
}

TEST(Comparison, TooLongNamesLoseTheirLastOptions) {
  const std::vector rows{row("serial", "", 2000us), row("commfuse", "direct, g=3, sum on arrival, add on aux", 1000us)};
  EXPECT_NE(comparison_table(rows).find("\n> commfuse (direct, g=3)      1000.0 "), std::string::npos)
      << comparison_table(rows);
}

TEST(Comparison, OptionsThatDistinguishRowsStayWhole) {
  const std::vector rows{row("commfuse", "direct, g=3, add on aux", 2000us), row("commfuse", "direct, g=3", 1000us)};
  const std::string table = comparison_table(rows);
  EXPECT_NE(table.find("\n  commfuse (direct, g=3, add on aux)\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\n> commfuse (direct, g=3)      1000.0 "), std::string::npos) << table;
}

/// Returns the columns that each line occupies on a screen: style marks take none, and each dash of a bar takes one.
std::vector<std::size_t> columns_of_lines(const std::string& table) {
  std::vector<std::size_t> columns{0};
  bool in_mark = false;
  for (const char c : table) {
    if (c == '\n') {
      columns.push_back(0);
    } else if (c == '\x1b' || in_mark) {
      in_mark = c != 'm';
    } else {
      columns.back() +=
          (static_cast<unsigned char>(c) & 0xC0U) == 0x80U ? 0 : 1;  // skips bytes that continue a character
    }
  }
  return columns;
}

TEST(Comparison, LongTimesKeepTheColumns) {
  const auto table_of = [](Duration longest) {
    return comparison_table(std::vector{row("serial", "", longest), row("commfuse", "ring", longest / 2)});
  };
  const std::string heading = "seq 32K             time/";
  EXPECT_NE(table_of(999999us).find(heading + "ms     \u00b1 vs serial  exposed    MFU\n"
                                              "  serial                     999.999     -         -  999.099  50.0%\n"),
            std::string::npos)
      << table_of(999999us);
  EXPECT_NE(table_of(1234567us).find("  serial                      1234.6     -         -   1233.7  50.0%\n"),
            std::string::npos)
      << table_of(1234567us);
  EXPECT_NE(table_of(11492751us)
                .find("seq 32K              time/s     \u00b1 vs serial  exposed    MFU\n"
                      "  serial                      11.493     -         -   11.492  50.0%\n"),
            std::string::npos)
      << table_of(11492751us);
  for (const Duration longest : std::initializer_list<Duration>{999999us, 1s, 9999999us, 10s, 999s, 1000s, 9000000s}) {
    const std::vector<std::size_t> columns = columns_of_lines(table_of(longest));
    EXPECT_EQ(std::vector(columns.begin() + 2, columns.begin() + 5), std::vector<std::size_t>(3, 68))
        << longest.count();
  }
}

TEST(Comparison, StyleMakesTheWinnerBoldAndDrawsBars) {
  // The slowest row's 2000 us are 11 dashes, 6 of them for its exposed 1100 us; 1000 us with 100 us exposed are 6
  // dashes, 1 of them for the exposed part.
  const std::vector rows{row("serial", "", 2000us), row("commfuse", "ring", 1000us)};
  const std::string table = comparison_table(rows, {}, {}, TerminalStyle(true));
  const auto dashes = [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      text += "\u2501";
    }
    return text;
  };
  EXPECT_NE(table.find("50.0% \x1b[90m" + dashes(5) + "\x1b[0m\x1b[31m" + dashes(6) + "\x1b[0m\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("\n\x1b[1m> commfuse (ring) "), std::string::npos) << table;
  EXPECT_NE(table.find("50.0%\x1b[0m \x1b[90m" + dashes(5) + "\x1b[0m\x1b[31m" + dashes(1) + "\x1b[0m\n"),
            std::string::npos)
      << table;
  EXPECT_LE(std::ranges::max(columns_of_lines(table)), 80U);
}

TEST(Comparison, ParametersDistinguishSchedulesOfOneStrategy) {
  const std::vector rows{row("serial", "", 2000us), row("commfuse", "ring, add on aux", 1010us),
                         row("commfuse", "direct", 1000us)};
  EXPECT_EQ(verdict(rows), "Tie: commfuse (direct) and commfuse (ring, add on aux) are within 1.0%.");
  EXPECT_NE(comparison_table(rows).find("\n~ commfuse (ring)           "), std::string::npos);
}

TEST(Comparison, ManyKindsOfTiesAreCounted) {
  VerdictCount count;
  for (const char* other : {"a", "b", "c", "d", "e"}) {
    count.add({"z", other});
  }
  count.add({"z", "e"});
  count.add({"z"});
  EXPECT_EQ(count.in_words(), "z wins 1, 6 tie (e and z 2; a and z 1; b and z 1; c and z 1; others 1)");
}

TEST(Rows, CsvHasAHeaderAndOneLinePerRow) {
  const std::vector rows{row("sliced", "k=4", 1250us)};
  const std::string csv = to_csv(rows);
  EXPECT_EQ(csv.rfind("schema,model_version,model,hardware,link_bandwidth,network_bandwidth,all_reduce_kernel,link_"
                      "rate_gb_s,network_rate_gb_s,"
                      "scope,ranks,batch,seq,dtype,strategy,implements,bound,slices,",
                      0),
            0U);
  const std::string first = fmt::format("\r\ncommfuse.result/2,{},llama-3.1-70b,h100-sxm,", model_version);
  EXPECT_NE(csv.find(first + "x1,x1,nccl,,,mlp,8,1,32768,bf16,sliced,,,,,,,,,,,,,,,ok,,1250,,,900,"), std::string::npos)
      << csv;
}

TEST(Rows, CsvQuotesCellsThatNeedIt) {
  ResultRow hostile_row = row("serial", "", 1us);
  hostile_row.model = "a \"b\", c";
  EXPECT_NE(to_csv({&hostile_row, 1}).find(",\"a \"\"b\"\", c\","), std::string::npos);
}

TEST(Rows, NoCsvTextIsAFormula) {
  ResultRow hostile_row = row("serial", "", 1us);
  hostile_row.model = "=HYPERLINK(\"http://evil\")";
  hostile_row.jitter = "@SUM(1)";
  hostile_row.faults = "-1+1";
  const std::string csv = to_csv({&hostile_row, 1});
  EXPECT_NE(csv.find(",\"'=HYPERLINK(\"\"http://evil\"\")\","), std::string::npos) << csv;
  EXPECT_NE(csv.find(",'@SUM(1),'-1+1,"), std::string::npos) << csv;
  for (const char* plain : {"-", "-1", "+2.5", "-1e-9", "-inf", "x1", "450GB/s", "a=b", "", "llama-3.1-8b"}) {
    EXPECT_EQ(csv_text(plain), plain);
  }
  for (const char* formula : {"+a", "\tx", "=1", "-1%x", "+-x"}) {
    EXPECT_EQ(csv_text(formula), "'" + std::string(formula));
  }
}

TEST(Rows, JsonWritesNullForColumnsThatDoNotApply) {
  const std::vector rows{row("serial", "", 1250us)};
  EXPECT_NE(to_json(rows).find("\"slices\":null"), std::string::npos);
  EXPECT_NE(to_json(rows).find("\"makespan_us\":1250.0"), std::string::npos);
  EXPECT_EQ(to_json({}), "[\n]\n");
}

TEST(Rows, EveryColumnHasADistinctNameAndADescription) {
  std::vector<std::string_view> names;
  for (const ResultColumn& column : result_columns()) {
    EXPECT_FALSE(column.doc.empty()) << column.name;
    EXPECT_EQ(std::count(names.begin(), names.end(), column.name), 0) << column.name;
    names.push_back(column.name);
  }
}

TEST(Comparison, SchedulesThatTakeNoTimeAreEqual) {
  std::vector<ResultRow> rows(2);
  rows[0].strategy = "serial";
  rows[1].strategy = "sliced";
  EXPECT_NE(comparison_table(rows).find("within 0.0%"), std::string::npos) << comparison_table(rows);
}

TEST(Comparison, ALongFileNameHasItsOwnLine) {
  std::vector<ResultRow> rows(1);
  rows[0].strategy = "a ring that goes both ways";
  rows[0].parameters = "both-ways.yaml";
  const std::string table = comparison_table(rows);
  EXPECT_NE(table.find("\n> a ring that goes both ways (both-ways.yaml)\n"), std::string::npos) << table;
}

}  // namespace
}  // namespace commfuse::reports
