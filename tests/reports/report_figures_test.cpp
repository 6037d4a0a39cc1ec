// SPDX-License-Identifier: Apache-2.0
// Tests figures of reports on invented runs; comments derive the expected numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "model/text/plain_text.h"
#include "reports/crossover.h"
#include "reports/figure/agreement.h"
#include "reports/figure/breakdown.h"
#include "reports/figure/crossing.h"
#include "reports/figure/distribution.h"
#include "reports/figure/figure_json.h"
#include "reports/figure/heatmap.h"
#include "reports/figure/roofline.h"
#include "reports/figure/spread.h"
#include "reports/figure/svg.h"
#include "reports/figure/terminal.h"
#include "reports/figure/tornado.h"
#include "reports/figure/wording.h"
#include "reports/html/study_sections.h"
#include "tests/reports/figure_marks.h"
#include "tests/reports/trace_runs.h"
#include "tests/texts.h"

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;
using test::marks_of;
using test::occurrences;
using test::traced;

TEST(Breakdown, ThePartsAddUpExactlyToTheMakespan) {
  for (const char* strategy : {"serial", "sliced", "commfuse"}) {
    for (const SiteKind kind : {SiteKind::ag_gemm, SiteKind::gemm_rs}) {
      const TracedRun run = traced(strategy, kind, 4);
      Duration sum{};
      for (const TimePart& part : time_parts(run)) {
        sum += part.time;
      }
      EXPECT_EQ(sum, run.row.analysis.critical.makespan) << strategy;
    }
  }
}

TEST(Breakdown, TheHeadOfSerialIsTheGather) {
  // The run is a gather of 60 us, then a GEMM of 80 us.
  const std::vector<TimePart> parts = time_parts(traced("serial", SiteKind::ag_gemm, 4));
  ASSERT_EQ(parts.size(), 7U);
  EXPECT_EQ(parts[0].name, "compute");
  EXPECT_EQ(parts[0].time, 80us);
  EXPECT_EQ(parts[4].name, "head");
  EXPECT_EQ(parts[4].time, 60us);
  EXPECT_EQ(parts[5].time + parts[6].time, 0us);
}

TEST(Breakdown, TheTitleNamesNoBound) {
  std::vector<TracedRun> runs{traced("serial", SiteKind::ag_gemm, 4), traced("commfuse", SiteKind::ag_gemm, 4)};
  runs[0].row.bound = true;
  const Breakdown& parts = runs[1].row.analysis.critical;
  EXPECT_EQ(breakdown_figure(runs).title, fmt::format("{} leaves {} of its time exposed", label_of(runs[1].row),
                                                      percent(to_seconds(parts.exposed) / to_seconds(parts.makespan))));
}

TEST(Breakdown, BarsEndAtTheMakespanEvenIfAPartIsNegative) {
  TracedRun run = traced("serial", SiteKind::ag_gemm, 4);
  run.row.analysis.critical.stretch = -10us;
  run.row.analysis.critical.slicing = 10us;
  const Figure figure = breakdown_figure({&run, 1});
  double right = 0.0;
  for (const RectMark& box : marks_of<RectMark>(figure)) {
    right = std::max(right, box.to.x);
  }
  EXPECT_DOUBLE_EQ(right, 140.0);
  EXPECT_DOUBLE_EQ(figure.x.low, -10.0);
  EXPECT_EQ(figure.title, "serial leaves 42.9% of its time exposed");  // 60 of 140
  ASSERT_EQ(marks_of<TextMark>(figure).size(), 1U);
  EXPECT_EQ(marks_of<TextMark>(figure)[0].strong, "140.0 \u00b5s");  // the total, after its bar
  EXPECT_GT(marks_of<TextMark>(figure)[0].at.x, right);
}

TEST(Breakdown, AScheduleWithoutOpsHasNoExposedTime) {
  TracedRun run = traced("serial", SiteKind::ag_gemm, 4);
  run.timeline.clear();
  run.row.analysis.critical = {};
  EXPECT_EQ(breakdown_figure(std::span(&run, 1)).title, "serial leaves 0.0% of its time exposed");
}

TEST(Breakdown, WithoutATimelineExposedTimeIsOnePart) {
  TracedRun run = traced("serial", SiteKind::ag_gemm, 4);
  run.timeline.clear();
  const std::vector<TimePart> parts = time_parts(run);
  EXPECT_EQ(parts.back().name, "exposed");
  EXPECT_EQ(parts.back().time, 60us);
}

SampledRun thousand_samples(const char* name, Duration shortest) {
  SampledRun run{name, std::vector<Duration>(1000)};
  for (std::size_t i = 0; i < run.sorted.size(); ++i) {
    run.sorted[i] = shortest + static_cast<std::int64_t>(i) * 1ns;
  }
  return run;
}

TEST(Distribution, TheP99OfAThousandIsThe990thWithItsOrderStatisticsBand) {
  const std::vector<SampledRun> runs{thousand_samples("serial", 1000us), thousand_samples("commfuse", 500us)};
  const Figure figure = distribution_figure(runs);
  EXPECT_EQ(figure.title, "commfuse has the lowest p99: 501.0 \u00b5s, 0.1% above its median");
  const auto row = std::find_if(figure.data.rows.begin(), figure.data.rows.end(),
                                [](const auto& cells) { return cells[0] == "commfuse" && cells[1] == "99"; });
  ASSERT_NE(row, figure.data.rows.end());
  EXPECT_EQ((*row)[2], "500.989");
  const Estimate p99 = percentile(runs[1].sorted, 990);
  EXPECT_EQ((*row)[3], "500." + std::to_string(p99.range->low.count() / 1000 - 500000));
  EXPECT_EQ(marks_of<BandMark>(figure).size(), 2U);
  EXPECT_EQ(marks_of<LineMark>(figure).size(), 2U);
}

TEST(Distribution, ASectionNamesASingleRunInTheSingular) {
  const PointStudy study{.runs = {traced("serial", SiteKind::ag_gemm, 4)}, .samples = {{"serial", {1000us}}}};
  Charts charts;
  const std::string html = study_section(study, "a point", charts);
  EXPECT_NE(html.find("<p class=\"quiet\">1 run of each schedule with the same random draws."), std::string::npos)
      << html;
}

TEST(Distribution, IntervalsOfManyRunsAreInsideAndNotCalledMissing) {
  SampledRun run{"serial", std::vector<Duration>(4000, 1000us)};
  for (std::size_t i = 3990; i < 4000; ++i) {  // ten slow runs: p99.9 is the 3996th, its interval ends in the last five
    run.sorted[i] = i < 3996 ? 1100us : 2000us;
  }
  const Figure figure = distribution_figure({&run, 1});
  const Estimate highest = percentile(run.sorted, 999);
  ASSERT_TRUE(highest.range);
  EXPECT_EQ(highest.value, 1100us);
  EXPECT_EQ(highest.range->high, 2000us);
  EXPECT_LT(2000.0, figure.x.high);  // in microseconds
  PointStudy study{.runs = {traced("serial", SiteKind::ag_gemm, 4)}, .samples = {run}};
  Charts charts;
  constexpr std::string_view missing = "the highest percentiles have too few runs for an interval";
  EXPECT_EQ(study_section(study, "a point", charts).find(missing), std::string::npos);
  study.samples = {thousand_samples("serial", 1000us)};
  EXPECT_NE(study_section(study, "a point", charts).find(missing), std::string::npos);
}

TEST(Distribution, AnIndistinguishablePercentileIsNotAWinner) {
  const std::vector<SampledRun> runs{thousand_samples("serial", 1000us), thousand_samples("sliced", 500us + 1ns),
                                     thousand_samples("commfuse", 500us)};
  EXPECT_EQ(
      distribution_figure(runs).title,
      "The p99 of commfuse is 501.0 \u00b5s, 0.1% above its median; the p99 of sliced lies within its 95% interval");
}

TEST(Distribution, SeveralIndistinguishablePercentilesArePlural) {
  const std::vector<SampledRun> runs{thousand_samples("serial", 500us + 2ns), thousand_samples("sliced", 500us + 1ns),
                                     thousand_samples("commfuse", 500us)};
  EXPECT_EQ(
      distribution_figure(runs).title,
      "The p99 of commfuse is 501.0 \u00b5s, 0.1% above its median; those of serial and sliced lie within its 95% "
      "interval");
}

TEST(Distribution, FewSamplesGiveNoHighPercentiles) {
  const SampledRun run{"serial", {1us, 2us, 3us, 4us, 5us, 6us, 7us, 8us, 9us, 10us}};
  const Figure figure = distribution_figure({&run, 1});
  EXPECT_EQ(figure.data.rows.back()[1], "90");  // ten samples resolve no percentile above p90
}

TEST(RooflineFigure, AGemmIsAtItsIntensityAndRate) {
  const Roofline roofline{.accelerator = "h100-sxm",
                          .dtype = "bf16",
                          .peak = {1e15},
                          .memory = {4e12},
                          .gemms = {{.schedule = "serial",
                                     .shape = "product",
                                     .work = {5e11},
                                     .traffic = {1'000'000'000},
                                     .time = 1ms,
                                     .count = 2}}};
  const Figure figure = roofline_figure(roofline);
  const PointsMark point = marks_of<PointsMark>(figure).at(0);
  EXPECT_DOUBLE_EQ(point.points[0].x, 500.0);  // FLOP per byte
  EXPECT_DOUBLE_EQ(point.points[0].y, 500.0);  // TFLOP/s
  EXPECT_EQ(figure.title, "GEMMs reach 50.0% of the peak of h100-sxm");
  const LineMark roof = marks_of<LineMark>(figure).at(0);
  EXPECT_DOUBLE_EQ(roof.points[1].x, 250.0);  // The ridge is at 1e15 / 4e12.
  EXPECT_DOUBLE_EQ(roof.points[1].y, 1000.0);
}

TEST(RooflineFigure, ASlowMachineHasARate) {
  // 1e7 FLOP in 1 ms are 0.01 TFLOP/s, half of the peak.
  const Roofline roofline{
      .accelerator = "cpu",
      .dtype = "fp32",
      .peak = {2e10},
      .memory = {1e9},
      .gemms = {
          {.schedule = "serial", .shape = "product", .work = {1e7}, .traffic = {100'000}, .time = 1ms, .count = 1}}};
  const Figure figure = roofline_figure(roofline);
  EXPECT_EQ(figure.description, "serial, product: 1 time, 100 FLOP/byte, 0.01 TFLOP/s, 50.0% of the peak. ");
  EXPECT_EQ(marks_of<TextMark>(figure).at(0).text, "dense peak, 0.02 TFLOP/s");
}

TEST(Percent, ASmallNegativeShareHasNoSign) {
  EXPECT_EQ(percent(-0.0004), "0.0%");
  EXPECT_EQ(percent(-0.0734), "-7.3%");
}

TEST(Tornado, TheLargestEffectIsFirstInBothDirections) {
  Explanation explanation;
  explanation.row = traced("serial", SiteKind::ag_gemm, 2).row;
  explanation.holds = {{.name = "link.rate", .provenance = Provenance::fitted, .standard_error = 0.1, .effect = -0.05},
                       {.name = "GEMM 4K x 7K x 8K", .standard_error = 0.05, .effect = 0.02},
                       {.name = "unused", .effect = 0.0}};
  ASSERT_TRUE(has_effects(explanation));
  const Figure figure = tornado_figure(explanation);
  EXPECT_EQ(marks_of<RectMark>(figure).size(), 4U);
  ASSERT_EQ(figure.y.ticks.size(), 2U);
  EXPECT_EQ(figure.y.ticks[0].label, "link.rate");
  EXPECT_EQ(figure.y.ticks[1].label, "GEMM 4K \u00d7 7K \u00d7 8K");
  EXPECT_EQ(figure.title,
            fmt::format("Largest uncertainty of the time of {}: link.rate, \u00b14.9%", label_of(explanation.row)));
  EXPECT_NEAR(marks_of<RectMark>(figure)[0].from.x, 100.0 * (std::exp(-0.05) - 1.0), 1e-12);
  EXPECT_NE(terminal_plot(figure, {.columns = 80, .unicode = false}).find("GEMM 4K x 7K x 8K|"), std::string::npos);
  explanation.holds.erase(explanation.holds.begin(), explanation.holds.begin() + 2);
  EXPECT_FALSE(has_effects(explanation));
}

TEST(Inputs, EveryParameterHasItsKindErrorAndSource) {
  Explanation explanation;
  explanation.row = traced("serial", SiteKind::ag_gemm, 2).row;
  EXPECT_EQ(parameters_table(explanation, "ranks 2, seq 1K"), "");
  explanation.holds = {
      {.name = "link.rate",
       .provenance = Provenance::fitted,
       .source = "<b>a.csv",
       .standard_error = 0.1,
       .effect = -0.05},
      {.name = "GEMM 4K x 4K x 4K", .provenance = std::nullopt, .source = {}, .standard_error = 0.06, .effect = 0.01},
      {.name = "launch_cost", .provenance = Provenance::prior, .source = {}, .standard_error = 0.5, .effect = 0.0}};
  const std::string html = parameters_table(explanation, "ranks 2, seq 1K");
  EXPECT_NE(
      html.find("<th scope=\"row\">link.rate</th><td class=\"words\">fitted</td><td>10.0%</td><td>\u22124.88%</td>"
                "<td class=\"words source\">&lt;b&gt;a.csv</td>"),
      std::string::npos)
      << html;
  EXPECT_NE(html.find("Parameters behind the time of " + label_of(explanation.row) + ", ranks 2, seq 1K</span>"),
            std::string::npos)
      << html;
  // Parameters without effect are named, without a row of zeros.
  EXPECT_NE(html.find("Less than 0.005% each: launch_cost (prior)."), std::string::npos);
  EXPECT_EQ(html.find("0.00%"), std::string::npos);
  EXPECT_EQ(html.find("GEMM 4K"), std::string::npos);  // fits are not inputs
}

ResultRow row(const char* strategy, std::int64_t ranks, std::int64_t seq, Duration makespan) {
  ResultRow row = traced("serial", SiteKind::ag_gemm, 2).row;
  row.strategy = strategy;
  row.ranks = ranks;
  row.seq = seq;
  row.analysis.critical = {.makespan = makespan, .compute = makespan};
  return row;
}

TEST(Lead, InterpolatesTheCrossingInLogarithms) {
  // 10% slower at 1K and 10% faster at 4K: equal at the geometric mean, 2K.
  const std::vector<ResultRow> rows{row("serial", 2, 1024, 1000us), row("commfuse", 2, 1024, 1100us),
                                    row("serial", 2, 4096, 1100us), row("commfuse", 2, 4096, 1000us)};
  const auto figure = lead_figure(rows, "commfuse");
  ASSERT_TRUE(figure);
  const PointsMark crossing = marks_of<PointsMark>(*figure).at(0);
  EXPECT_NEAR(crossing.points[0].x, 2048.0, 1e-6);
  EXPECT_EQ(figure->title, "commfuse is clearly ahead at 1 of 2 points, at best 1.10x (ranks 2, seq 4K)");
  EXPECT_FALSE(lead_figure(rows, "sliced"));
}

TEST(Lead, NamesASingleRankInTheSingular) {
  const std::vector<ResultRow> rows{row("serial", 1, 1024, 1000us), row("commfuse", 1, 1024, 1100us),
                                    row("serial", 1, 4096, 1100us), row("commfuse", 1, 4096, 1000us)};
  EXPECT_EQ(lead_figure(rows, "commfuse")->legend[0].text, "1 rank");
}

TEST(WinnerMap, NamesTheWinnerOfEveryCellAndGreysTies) {
  const std::vector<ResultRow> rows{row("serial", 2, 1024, 1000us), row("commfuse", 2, 1024, 1100us),
                                    row("serial", 2, 4096, 1000us), row("commfuse", 2, 4096, 990us)};
  const std::vector<CrossoverMap> maps = maps_of(std::span<const ResultRow>(rows));
  ASSERT_EQ(maps.size(), 1U);
  const Figure figure = winner_figure(maps[0]);
  const std::vector<CellMark> cells = marks_of<CellMark>(figure);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].text, "se 9.1%");
  EXPECT_NE(cells[0].role, Role::tie);
  EXPECT_EQ(cells[1].text, "\u2248 co");
  EXPECT_EQ(cells[1].role, Role::tie);
  EXPECT_EQ(figure.title, "serial wins 1 of 2 points, 1 ties");
  // A strategy that wins nowhere has no separate colour.
  ASSERT_EQ(figure.legend.size(), 3U);
  EXPECT_EQ(figure.legend[0].role, Role::tie);
  EXPECT_EQ(figure.legend[0].text, "\u2248 co: commfuse");  // Cells use this name.
  EXPECT_NE(figure.legend[1].role, Role::tie);
  EXPECT_EQ(figure.legend[1].text, "se: serial; %: time saved against the second");
}

TEST(WinnerMap, DataHaveCountsInDigits) {
  const std::vector<ResultRow> rows{row("serial", 2, 1024, 1000us), row("commfuse", 2, 1024, 500us),
                                    row("serial", 1024, 4096, 1000us), row("commfuse", 1024, 4096, 750us)};
  const CrossoverMap map = maps_of(std::span<const ResultRow>(rows)).at(0);
  EXPECT_EQ(figure_csv(winner_figure(map)),
            "ranks,seq,winner,second,saved,close\r\n2,1024,commfuse,serial,0.5,0\r\n"
            "1024,4096,commfuse,serial,0.25,0\r\n");
  EXPECT_EQ(figure_csv(saving_figure(map).value()),
            "ranks,seq,strategy,saved_share_of_serial\r\n2,1024,commfuse,0.5\r\n1024,4096,commfuse,0.25\r\n");
}

TEST(WinnerMap, NamesItsBandwidthIfTheMapHasSeveral) {
  std::vector<ResultRow> rows;
  for (const auto& [links, rate] : {std::pair("x1", 100e9), std::pair("x2", 200e9)}) {
    for (const auto& [seq, time] : {std::pair(1024, 1100us), std::pair(4096, 900us)}) {
      rows.push_back(row("serial", 2, seq, 1000us));
      rows.push_back(row("commfuse", 2, seq, time));
      rows.back().link_bandwidth = links;
      rows.back().link_rate = rate;
      rows[rows.size() - 2].link_bandwidth = links;
      rows[rows.size() - 2].link_rate = rate;
    }
  }
  const std::vector<CrossoverMap> maps = maps_of(std::span<const ResultRow>(rows));
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_EQ(winner_figure(maps[0]).title, "links x1 (the lowest of 2 rates): commfuse wins 1 of 2 points, serial 1");
  EXPECT_TRUE(saving_figure(maps[0])->title.starts_with("links x1 (the lowest of 2 rates): Overlap saves a median "));
}

TEST(WinnerMap, ShowsBandwidthsThatHaveResults) {
  std::vector<ResultRow> rows;
  for (const auto& [links, link_rate, network, network_rate] :
       {std::tuple("x1", 100e9, "x2", 50e9), std::tuple("x2", 200e9, "x1", 25e9)}) {
    for (const auto& [strategy, time] : {std::pair("serial", 1000us), std::pair("commfuse", 800us)}) {
      rows.push_back(row(strategy, 2, 1024, time));
      rows.back().link_bandwidth = links;
      rows.back().link_rate = link_rate;
      rows.back().network_bandwidth = network;
      rows.back().network_rate = network_rate;
    }
  }
  const CrossoverMap map = maps_of(std::span<const ResultRow>(rows)).at(0);
  const std::string bandwidths = "links x1 (the lowest of 2 rates), network x2 (one of 2 rates): ";
  EXPECT_EQ(winner_figure(map).title, bandwidths + "commfuse wins the only point");
  EXPECT_EQ(marks_of<CellMark>(winner_figure(map)).size(), 1U);
  EXPECT_EQ(saving_figure(map).value().title, bandwidths + "Overlap saves 20.0% of serial's time at the only point");
}

/// Returns serial, which takes 1000 us, and commfuse, at two bandwidths of one point.
std::vector<ResultRow> two_bandwidths(Duration commfuse) {
  std::vector<ResultRow> rows;
  for (const auto& [links, rate] : {std::pair("x1", 100e9), std::pair("x2", 200e9)}) {
    for (const auto& [strategy, time] : {std::pair("serial", Duration{1000us}), std::pair("commfuse", commfuse)}) {
      rows.push_back(row(strategy, 2, 1024, time));
      rows.back().link_bandwidth = links;
      rows.back().link_rate = rate;
    }
  }
  return rows;
}

TEST(WinnerMap, TitlesASinglePointInTheSingular) {
  const auto titles = [](Duration commfuse) {
    const std::vector<ResultRow> rows = two_bandwidths(commfuse);
    const std::vector<CrossoverMap> maps = maps_of(std::span<const ResultRow>(rows));
    return std::pair(winner_figure(maps.at(0)).title, saving_figure(maps.at(0))->title);
  };
  const std::string links = "links x1 (the lowest of 2 rates): ";
  EXPECT_EQ(titles(800us), std::pair(links + "commfuse wins the only point",
                                     links + "Overlap saves 20.0% of serial's time at the only point"));
  EXPECT_EQ(titles(990us),
            std::pair(links + "The strategies tie at the only point",
                      links + "Overlap saves 1.0% of serial's time at the only point: too close to call"));
  EXPECT_EQ(titles(1250us), std::pair(links + "serial wins the only point",
                                      links + "Overlap takes 25.0% more time than serial at the only point"));
}

TEST(SavingMap, TitlesLossesAsMoreTime) {
  std::vector<ResultRow> rows{row("serial", 2, 1024, 1000us), row("commfuse", 2, 1024, 1100us),
                              row("serial", 2, 2048, 1000us), row("commfuse", 2, 2048, 1300us)};
  EXPECT_EQ(saving_map(rows).title, "Overlap loses at every point");
  EXPECT_EQ(saving_figure(maps_of(std::span<const ResultRow>(rows)).at(0))->title,
            "Overlap takes a median 20.0% more time than serial over 2 points: it loses at all of them");
  rows[1] = row("commfuse", 2, 1024, 990us);
  rows[3] = row("commfuse", 2, 2048, 990us);
  const Figure close = saving_map(rows);
  EXPECT_EQ(close.title, "Overlap is too close to call at every point");
  // Without a coloured cell, there is no scale, and the legend explains the numbers.
  EXPECT_FALSE(close.scale);
  ASSERT_EQ(close.legend.size(), 1U);
  EXPECT_EQ(close.legend[0].text, "grey: too close to call; share of serial's time that overlap saves");
  const std::optional<Figure> figure = saving_figure(maps_of(std::span<const ResultRow>(rows)).at(0));
  ASSERT_TRUE(figure);
  EXPECT_FALSE(figure->scale);
  EXPECT_EQ(figure->legend[0].text, close.legend[0].text);
}

TEST(SavingMap, OfOneSequenceLengthIsAsWideAsItsTitle) {
  const std::vector<ResultRow> rows{row("serial", 2, 4096, 1000us), row("commfuse", 2, 4096, 800us),
                                    row("serial", 4, 4096, 1000us), row("commfuse", 4, 4096, 700us)};
  EXPECT_EQ(saving_map(rows).plot_width, 128.0);
  EXPECT_EQ(winner_figure(maps_of(std::span<const ResultRow>(rows)).at(0)).plot_width, 128.0);
  EXPECT_EQ(map_width(3), 192.0);
  EXPECT_EQ(map_width(100), 860.0);
}

TEST(SavingMap, ShowsSavingsOfOverlapAndGreysTies) {
  std::vector<ResultRow> rows{row("serial", 2, 1024, 1000us), row("commfuse", 2, 1024, 800us),
                              row("serial", 2, 2048, 1000us), row("commfuse", 2, 2048, 990us),
                              row("serial", 4, 1024, 1000us), row("commfuse", 4, 1024, 1100us),
                              row("serial", 4, 2048, 1000us)};
  const Figure figure = saving_map(rows);
  EXPECT_EQ(
      figure.title,
      "Overlap saves up to 20.0% of serial's time (ranks 2, seq 1K); it pays at 1, loses at 1 and is too close to "
      "call at 1 of 3 points");
  const std::vector<CellMark> cells = marks_of<CellMark>(figure);  // by ranks, then sequence
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_EQ(cells[0].text, "+20%");
  EXPECT_DOUBLE_EQ(*cells[0].level, 1.0);
  EXPECT_FALSE(cells[0].role);
  EXPECT_EQ(cells[1].text, "+1%");
  EXPECT_EQ(cells[1].role, Role::tie);
  EXPECT_EQ(cells[2].text, "\u221210%");
  EXPECT_NEAR(*cells[2].level, 0.25, 1e-12);
  EXPECT_FALSE(cells[3].level);
  EXPECT_EQ(figure.data.rows[1], (std::vector<std::string>{"2", "2048", "0.010000000000000009"}));
  EXPECT_TRUE(figure.scale->diverging);
  rows.erase(rows.begin() + 2, rows.end());
  // If nothing loses, the scale begins at 0 and has one colour.
  EXPECT_FALSE(saving_map(rows).scale->diverging);
  EXPECT_EQ(saving_map(rows).scale->low, "0%");
  EXPECT_DOUBLE_EQ(*marks_of<CellMark>(saving_map(rows))[0].level, 1.0);
  EXPECT_EQ(saving_map(rows).title,
            "Overlap saves up to 20.0% of serial's time (ranks 2, seq 1K); it pays at every point");
  EXPECT_TRUE(saving_map(rows).legend.empty());
}

TEST(SavingMap, AgreesWithTheMapOfWinners) {
  const std::vector<ResultRow> rows{row("serial", 2, 1024, 1000us), row("commfuse", 2, 1024, 800us),
                                    row("serial", 2, 2048, 1000us), row("commfuse", 2, 2048, 990us),
                                    row("serial", 4, 1024, 1000us), row("commfuse", 4, 1024, 1250us)};
  const std::vector<CrossoverMap> maps = maps_of(std::span<const ResultRow>(rows));
  ASSERT_EQ(maps.size(), 1U);
  const std::optional<Figure> figure = saving_figure(maps[0]);
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->title,
            "Overlap saves a median 1.0% of serial's time over 3 points: it pays at 1, loses at 1 and is too close to "
            "call at 1");
  const std::vector<CellMark> cells = marks_of<CellMark>(*figure);
  const std::vector<CellMark> expected = marks_of<CellMark>(saving_map(rows));
  ASSERT_EQ(cells.size(), 3U);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_EQ(cells[i].text, expected[i].text);
    EXPECT_EQ(cells[i].role, expected[i].role);
    EXPECT_NEAR(*cells[i].level, *expected[i].level, 1e-12);
  }
  const std::vector<ResultRow> without_serial{row("sliced", 2, 1024, 1000us), row("commfuse", 2, 1024, 800us),
                                              row("sliced", 2, 2048, 1000us), row("commfuse", 2, 2048, 990us)};
  EXPECT_FALSE(saving_figure(maps_of(std::span<const ResultRow>(without_serial)).at(0)));
}

TEST(Maps, ShowEvenlySpreadPointsOfMany) {
  EXPECT_EQ(spread({.count = 5, .kept = 64}), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(spread({.count = 101, .kept = 3}), (std::vector<std::size_t>{0, 50, 100}));
  EXPECT_EQ(spread({.count = 101, .kept = 1}), (std::vector<std::size_t>{0}));
  std::vector<ResultRow> rows;
  for (std::int64_t seq = 1; seq <= 1000; ++seq) {
    rows.push_back(row("serial", 2, 64 * seq, 1000us));
    rows.push_back(row("commfuse", 2, 64 * seq, 900us));
  }
  EXPECT_EQ(marks_of<CellMark>(mfu_heatmap(rows, "serial")).size(), 64U);
  EXPECT_EQ(marks_of<CellMark>(winner_figure(maps_of(std::span<const ResultRow>(rows)).at(0))).size(), 64U);
}

TEST(Maps, TitlesCoverPointsThatAreNotShown) {
  // The map shows 64 of 128 sequence lengths, and not the second one, which has the largest saving.
  std::vector<ResultRow> rows;
  for (std::int64_t seq = 1; seq <= 128; ++seq) {
    rows.push_back(row("serial", 2, 1024 * seq, 1000us));
    rows.push_back(row("commfuse", 2, 1024 * seq, seq == 2 ? 500us : 900us));
    rows[rows.size() - 2].mfu = 0.4;
    rows.back().mfu = seq == 2 ? 0.5 : 0.45;
  }
  const Figure savings = saving_map(rows);
  EXPECT_EQ(savings.title, "Overlap saves up to 50.0% of serial's time (ranks 2, seq 2K); it pays at every point");
  EXPECT_EQ(savings.data.rows[1][1], "3072");
  EXPECT_EQ(mfu_heatmap(rows, "commfuse").title,
            "commfuse: MFU from 45.0% (ranks 2, seq 1K) to 50.0% (ranks 2, seq 2K)");
  EXPECT_EQ(mfu_difference(rows, "commfuse").title,
            "commfuse against the next best: ahead at 128, behind at 0, a tie at 0; at most +10.0 points (ranks 2, seq "
            "2K)");
}

TEST(Maps, HaveNoScaleWithoutAResult) {
  const std::vector<ResultRow> rows{row("serial", 2, 1024, Duration{}), row("serial", 2, 2048, Duration{})};
  EXPECT_EQ(mfu_heatmap(rows, "serial").title, "serial: no point of this map has a result");
  EXPECT_FALSE(mfu_heatmap(rows, "serial").scale);
}

TEST(AgreementFigure, CountsPointsWithinTenPercent) {
  const std::vector<MeasuredPair> pairs{{"serial", "ranks 2", 1000us, 1050us, 1040us, 1060us, 25},
                                        {"commfuse", "ranks 2", 800us, 1000us, 990us, 1010us, 25}};
  const Figure figure = agreement_figure(pairs);
  EXPECT_EQ(figure.title, "1 of 2 schedules was measured within 10% of the prediction; the median error is 15.0%");
  EXPECT_EQ(marks_of<PointsMark>(figure).size(), 2U);
  EXPECT_EQ(marks_of<LineMark>(figure).size(), 3U + 2U);  // guides, spreads
}

TEST(AgreementFigure, ATimeOfZeroIsDrawnAtTheEdge) {
  const MeasuredPair pair{"serial", "ranks 2", 1000us, 0us, 0us, 0us, 25};
  const Figure figure = agreement_figure({&pair, 1});
  EXPECT_EQ(figure.title, "serial was not measured within 10% of the prediction; the error is 100.0%");
  EXPECT_GT(figure.y.low, 0.0);
  EXPECT_EQ(marks_of<PointsMark>(figure).at(0).points.at(0).y, figure.y.low);
}

TEST(Residuals, HeldOutRowsAreSeparate) {
  const FitCheck fit{"copies", "a.csv", {{100.0, 110.0, false}, {200.0, 190.0, false}, {50.0, 60.0, true}}};
  const Figure figure = residual_figure(fit, "fit-1");
  EXPECT_EQ(figure.title, "copies: median error of the fit over 2 rows: 7.5%, over 1 held out: 20.0%");
  const std::vector<PointsMark> points = marks_of<PointsMark>(figure);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_NEAR(points[1].points[0].y, 20.0, 1e-9);
  EXPECT_EQ(residual_figure({"copies", "a.csv", {{50.0, 60.0, true}}}, "fit-2").title,
            "copies: median error over 1 row held out: 20.0%");
}

/// Returns a figure with one mark of each kind.
Figure every_mark() {
  Figure figure{.id = "all", .title = "All \u00b5 marks", .description = "one of each"};
  figure.x = {.label = "x", .unit = "us", .low = 0.0, .high = 10.0, .grid = true, .ticks = {{0.0, "0"}, {5.0, "5"}}};
  figure.y = {.label = "y", .low = 0.0, .high = 10.0, .ticks = {{5.0, "five"}}};
  figure.marks = {BandMark{{{0, 1}, {10, 1}}, {{0, 2}, {10, 2}}, Role::first},
                  LineMark{.points = {{0, 0}, {10, 10}}, .role = Role::second, .name = "up", .tips = {"a", "b"}},
                  PointsMark{.points = {{3, 3}}, .role = Role::third, .symbol = Symbol::triangle, .tips = {"<p>"}},
                  RectMark{.from = {1, 6}, .to = {3, 8}, .role = Role::exposed, .hatched = true, .tip = "box"},
                  BarMark{.x = 6, .width = 2, .from = 0, .to = 4, .role = Role::local},
                  CellMark{.at = {8, 8}, .text = "c", .role = Role::fourth},
                  TextMark{{5, 5}, "strong", "text"}};
  figure.legend = {{.text = "up", .role = Role::second, .line = true, .dashes = "5 4"},
                   {.text = "between", .role = Role::first, .band = true},
                   {.text = "three", .role = Role::third, .symbol = Symbol::triangle}};
  figure.data = {{"a", "b_us"}, {{"1", "2,5"}, {"x\"y", ""}}};
  return figure;
}

TEST(FigureJson, HasEveryMarkInItsOrder) {
  const auto json = nlohmann::json::parse(figure_json(every_mark()));
  std::vector<std::string> kinds;
  for (const auto& mark : json["marks"]) {
    kinds.push_back(mark["kind"]);
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"band", "line", "points", "box", "box", "cell", "text"}));
  EXPECT_EQ(json["marks"][2]["symbol"], "triangle");
  EXPECT_EQ(json["marks"][4]["from"], (nlohmann::json{5.0, 0.0}));
  EXPECT_EQ(json["x"]["ticks"][1], (nlohmann::json{5.0, "5"}));
  EXPECT_EQ(json["data"]["rows"][0][1], "2,5");
}

TEST(FigureJson, TheLegendHasDashesBandsAndSymbols) {
  const auto json = nlohmann::json::parse(figure_json(every_mark()));
  EXPECT_EQ(json["legend"][0]["dashes"], "5 4");
  EXPECT_FALSE(json["legend"][0].contains("symbol"));
  EXPECT_EQ(json["legend"][1]["band"], true);
  EXPECT_EQ(json["legend"][2]["symbol"], "triangle");
}

TEST(FigureJson, TheDataAreCsv) { EXPECT_EQ(figure_csv(every_mark()), "a,b_us\r\n1,\"2,5\"\r\n\"x\"\"y\",\r\n"); }

TEST(FigureSvg, DrawsBandsAndPointsAndEscapesTheirTips) {
  const std::string text = svg(every_mark());
  EXPECT_NE(text.find("class=\"cf-band cf-first\""), std::string::npos);
  EXPECT_NE(text.find("class=\"cf-point cf-third\"><title>&lt;p&gt;</title>"), std::string::npos);
  EXPECT_NE(text.find("stroke-dasharray=\"5 4\""), std::string::npos);
}

TEST(Terminal, NoLineIsWiderThanTheTerminal) {
  for (const int columns : {40, 80, 120}) {
    for (const bool unicode : {false, true}) {
      const std::vector<TracedRun> runs{traced("serial", SiteKind::ag_gemm, 4),
                                        traced("commfuse", SiteKind::ag_gemm, 4)};
      std::istringstream lines(terminal_plot(breakdown_figure(runs), {.columns = columns, .unicode = unicode}));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(characters(line), static_cast<std::size_t>(columns)) << line;
        EXPECT_TRUE(unicode || std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }))
            << line;
      }
    }
  }
}

TEST(Terminal, EachRowOfALargeMapHasItsLine) {
  // Labels of 64 rows are too close in a picture, where every second is labelled; only 62 and 64 ranks have a result.
  std::vector<ResultRow> rows;
  for (std::int64_t ranks = 1; ranks <= 64; ++ranks) {
    rows.push_back(row("serial", ranks, 1024, ranks == 62 || ranks == 64 ? Duration{1000us} : Duration{}));
    rows.back().mfu = ranks == 62 ? 0.25 : 0.5;
  }
  const std::string text = terminal_plot(mfu_heatmap(rows, "serial"), {.columns = 40, .unicode = false});
  EXPECT_NE(text.find("ranks\n  |               50.0%\n63|\n  |               25.0%\n61|\n"), std::string::npos)
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '|'), 64);
}

TEST(Terminal, TiesWithoutTextAreShadedAsTies) {
  std::vector<ResultRow> rows;
  for (std::int64_t i = 1; i <= 18;
       ++i) {  // A cell of two columns holds no text; only the first six points save enough.
    rows.push_back(row("serial", 2, 1024 * i, 1000us));
    rows.push_back(row("commfuse", 2, 1024 * i, i <= 6 ? 800us : 990us));
  }
  const std::string text = terminal_plot(saving_map(rows), {.columns = 40, .unicode = false});
  EXPECT_NE(text.find("2|############~~~~~~~~~~~~~~~~~~~~~~~~"), std::string::npos) << text;
  // The lowest level of a saving is a light shade, so a tie has another character.
  const std::string unicode = terminal_plot(saving_map(rows), {.columns = 40, .unicode = true});
  const std::size_t row = unicode.find("2\u2502");
  EXPECT_EQ(occurrences(unicode.substr(row, unicode.find('\n', row) - row), "\u2248"), 25U) << unicode;
  EXPECT_EQ(unicode.find("\u2591"), std::string::npos) << unicode;
}

TEST(Terminal, TheSmallestPlotMatchesItsText) {
  const TracedRun run = traced("serial", SiteKind::ag_gemm, 4);
  EXPECT_EQ(terminal_plot(breakdown_figure({&run, 1}), {.columns = 60, .unicode = false}),
            "serial leaves 42.9% of its time exposed\n"
            "serial|##########################////////////////////\n"
            "      +----------------------------------------------------\n"
            "       0    20     40    60     80    100    120   140\n"
            "       time (us)\n"
            "# compute  - slicing: cost of cutting work  x stretch:\n"
            "interference  + local: adds, packs, copies  / exposed: head,\n"
            "bubble, tail\n");
  const std::string wide = terminal_plot(breakdown_figure({&run, 1}), {.columns = 80, .unicode = false});
  EXPECT_NE(wide.find("/ 140.0 us\n"), std::string::npos) << wide;  // the total, if it fits
}

}  // namespace
}  // namespace commfuse::reports
