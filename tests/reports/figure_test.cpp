// SPDX-License-Identifier: Apache-2.0
// The golden pictures tests/reports/figure_*.svg open in a browser. After an intended change, renew them with
// COMMFUSE_RENEW_GOLDEN=1 and look at them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "reports/figure/gantt.h"
#include "reports/figure/heatmap.h"
#include "reports/figure/markup.h"
#include "reports/figure/svg.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"
#include "tests/reports/figure_marks.h"
#include "tests/reports/trace_runs.h"
#include "tests/texts.h"

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;
using test::marks_of;
using test::occurrences;
using test::traced;

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string{COMMFUSE_SOURCE_DIR} + "/tests/reports/figure_" + name + ".svg";
  if (std::getenv("COMMFUSE_RENEW_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

std::vector<TracedRun> tiny_runs() {
  return {traced("serial", SiteKind::ag_gemm, 2), traced("commfuse", SiteKind::ag_gemm, 2)};
}

TEST(Gantt, ATinyFigureMatchesItsFile) { expect_golden("gantt", svg(gantt_figure(tiny_runs(), 0))); }

TEST(Gantt, TheTitleNamesTheFastestAndItsExposedTime) {
  // serial: gather 60, GEMM 80. commfuse: two GEMMs of 40, with the exchange of 25 during the first.
  EXPECT_EQ(gantt_figure(tiny_runs()).title,
            "commfuse (ring) takes 42.9% less time than serial; exposed time 0.0 \u00b5s against 60.0 \u00b5s");
  const std::vector<TracedRun> equal_runs{traced("serial", SiteKind::ag_gemm, 2),
                                          traced("serial", SiteKind::ag_gemm, 2)};
  EXPECT_EQ(gantt_figure(equal_runs).title,
            "Tie: serial and serial end within 0.0%; exposed time 60.0 \u00b5s against 60.0 \u00b5s");
  EXPECT_EQ(gantt_figure(std::span(equal_runs).first(1)).title,
            "serial takes 140.0 \u00b5s, 60.0 \u00b5s of it exposed");
}

TEST(Gantt, SchedulesWithoutOpsEndTogether) {
  TracedRun run = traced("serial", SiteKind::ag_gemm, 2);
  run.timeline.clear();
  run.row.analysis.critical = {};
  const std::vector<TracedRun> runs{run, run};
  EXPECT_EQ(gantt_figure(runs).title,
            "Tie: serial and serial end within 0.0%; exposed time 0.0 \u00b5s against 0.0 \u00b5s");
}

TEST(Gantt, MeasuredRunsAreMarkedAndNotInTheTitle) {
  std::vector<TracedRun> runs = tiny_runs();
  runs.push_back(runs.back());
  runs.back().measured = true;
  for (TracedRun& run : runs) {
    run.row.mfu = 0.5;
  }
  const Figure figure = gantt_figure(runs);
  EXPECT_EQ(figure.title,
            "commfuse (ring) takes 42.9% less time than serial; exposed time 0.0 \u00b5s against 60.0 \u00b5s");
  const std::vector<TextMark> headings = marks_of<TextMark>(figure);
  ASSERT_EQ(headings.size(), 3U);
  EXPECT_EQ(headings[1].text, "80.0 \u00b5s \u00b7 MFU 50.0% \u00b7 exposed 0.0 \u00b7 rank 0");
  EXPECT_EQ(headings[2].text, "measured 80.0 \u00b5s \u00b7 exposed 0.0 \u00b7 rank 0");  // MFU is only predicted
  EXPECT_NE(figure.description.find("commfuse (ring) as measured, rank 0"), std::string::npos);
}

TEST(Gantt, HatchedTimeIsTheExposedTimeOfTheBreakdown) {
  for (const char* strategy : {"serial", "sliced", "commfuse"}) {
    for (const SiteKind kind : {SiteKind::ag_gemm, SiteKind::gemm_rs}) {
      for (const LaneKind add_lane : {LaneKind::compute, LaneKind::aux}) {
        const TracedRun run = traced(strategy, kind, 4, {.add_lane = add_lane});
        const Analysis& analysis = run.row.analysis;
        Duration sum{};
        Instant last{};
        for (const ExposedTime& time : exposed_times(run, analysis.critical_rank)) {
          EXPECT_LE(last, time.from);
          EXPECT_LT(time.from, time.to);
          sum += time.to - time.from;
          last = time.to;
        }
        EXPECT_EQ(sum, analysis.critical.exposed) << strategy;
      }
    }
  }
}

TEST(Gantt, GapsAreNamedByTheirPlace) {
  // sliced, gemm_rs, 4 slices: each GEMM takes 20, and the scatter after it takes 20; only the last scatter is exposed.
  const TracedRun run = traced("sliced", SiteKind::gemm_rs, 4);
  const std::vector<ExposedTime> times = exposed_times(run, 0);
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].place, ExposedTime::Place::tail);
  EXPECT_EQ(times[0].to - times[0].from, Duration(20us));
  const TracedRun gather = traced("serial", SiteKind::ag_gemm, 4);
  ASSERT_EQ(exposed_times(gather, 0).size(), 1U);
  EXPECT_EQ(exposed_times(gather, 0)[0].place, ExposedTime::Place::head);
}

TEST(Gantt, ManyNarrowOpsBecomeFewBars) {
  TracedRun run = traced("commfuse", SiteKind::ag_gemm, 64);
  const Timeline first_period = run.timeline;
  const Duration period = run.row.analysis.critical.makespan;
  for (std::int64_t i = 1; i < 100; ++i) {
    for (OpSpan span : first_period) {
      span.start += i * period;
      span.end += i * period;
      run.timeline.push_back(span);
    }
  }
  const Figure figure = gantt_figure({&run, 1}, 0);
  const std::vector<RectMark> bars = marks_of<RectMark>(figure);
  EXPECT_LT(bars.size(), 1500U);
  EXPECT_NE(std::find_if(bars.begin(), bars.end(),
                         [](const RectMark& bar) { return bar.tip.find(" ops, ") != std::string::npos; }),
            bars.end());
  EXPECT_LT(svg(figure).size(), 500'000U);
}

TEST(Gantt, ALabelAppearsOnlyWhereItFits) {
  const std::string text = svg(gantt_figure(tiny_runs(), 0));
  EXPECT_EQ(occurrences(text, ">gemm site</text>"), 1U);  // serial has one wide GEMM
  EXPECT_EQ(occurrences(text, "<text"), occurrences(text, "</text>"));
}

ResultRow row(const char* strategy, std::int64_t ranks, std::int64_t seq, double mfu, Duration makespan) {
  ResultRow row;
  row.strategy = strategy;
  row.ranks = ranks;
  row.seq = seq;
  row.mfu = mfu;
  row.analysis.critical.makespan = makespan;
  return row;
}

/// A map of two by two; commfuse has no result at 2 ranks and 1K, and ties at 2 ranks and 2K.
std::vector<ResultRow> four_points() {
  return {row("serial", 2, 1024, 0.40, 100us),    row("serial", 2, 2048, 0.50, 200us),
          row("commfuse", 2, 2048, 0.505, 199us), row("serial", 4, 1024, 0.30, 100us),
          row("commfuse", 4, 1024, 0.28, 107us),  row("serial", 4, 2048, 0.45, 200us),
          row("commfuse", 4, 2048, 0.60, 150us)};
}

TEST(Heatmap, ATwoByTwoFigureMatchesItsFile) { expect_golden("mfu", svg(mfu_heatmap(four_points(), "commfuse"))); }

TEST(Heatmap, TheDifferenceMatchesItsFile) {
  expect_golden("difference", svg(mfu_difference(four_points(), "commfuse")));
}

TEST(Heatmap, ABoundIsNotCompared) {
  std::vector<ResultRow> rows = four_points();
  for (const std::int64_t ranks : {2, 4}) {
    rows.push_back(row("limit", ranks, 1024, 0.99, 10us));
    rows.back().bound = true;
  }
  EXPECT_EQ(mfu_difference(rows, "commfuse").title, mfu_difference(four_points(), "commfuse").title);
  EXPECT_EQ(mfu_heatmap(rows, "limit").title.rfind("limit, a bound: MFU ", 0), 0U) << mfu_heatmap(rows, "limit").title;
}

TEST(Heatmap, APointWithoutAResultIsCrossed) {
  std::vector<ResultRow> rows = four_points();
  rows.push_back(row("commfuse", 2, 1024, 0.0, 0us));  // infeasible
  const std::vector<CellMark> cells = marks_of<CellMark>(mfu_heatmap(rows, "commfuse"));
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_FALSE(cells[0].level.has_value());
  EXPECT_EQ(cells[0].tip, "ranks 2, seq 1K: no result");
  EXPECT_EQ(cells[1].text, "50.5%");
}

TEST(Heatmap, MapsOfTheSameRowsShareTheirColours) {
  const std::vector<ResultRow> rows = four_points();
  const auto serial = mfu_heatmap(rows, "serial");
  const auto commfuse = mfu_heatmap(rows, "commfuse");
  ASSERT_TRUE(serial.scale && commfuse.scale);
  EXPECT_EQ(serial.scale->low, "28.0%");
  EXPECT_EQ(serial.scale->high, commfuse.scale->high);
  EXPECT_EQ(marks_of<CellMark>(commfuse)[3].level, 1.0);  // 60%, the highest MFU of all
}

TEST(Heatmap, TheDifferenceCountsWinsLossesAndTies) {
  const Figure figure = mfu_difference(four_points(), "commfuse");
  EXPECT_EQ(
      figure.title,
      "commfuse against the next best: ahead at 1, behind at 1, a tie at 1; at most +15.0 points (ranks 4, seq 2K)");
  const std::vector<CellMark> cells = marks_of<CellMark>(figure);
  EXPECT_TRUE(cells[1].framed);
  EXPECT_EQ(cells[2].text, "\u22122.0");
  EXPECT_NEAR(cells[3].level.value_or(0.0), 1.0, 1e-9);
}

TEST(Svg, TheSameFigureGivesTheSameBytes) { EXPECT_EQ(svg(gantt_figure(tiny_runs())), svg(gantt_figure(tiny_runs()))); }

TEST(Svg, LinesStepsAndBarsFollowTheirAxes) {
  Figure figure;
  figure.id = "f";
  figure.width = 120;
  figure.plot_width = 80;
  figure.height = 100;
  figure.x = {.low = 1.0, .high = 100.0, .logarithmic = true};
  figure.y = {.low = 0.0, .high = 10.0};
  figure.marks.emplace_back(LineMark{{{1, 0}, {10, 5}, {100, 10}}});
  figure.marks.emplace_back(LineMark{{{1, 0}, {10, 5}}, Role::exposed, true, true});
  const std::string text = svg_in_page(figure);
  // The plot begins at x = 20; 10 is in the middle of a logarithmic axis from 1 to 100.
  EXPECT_NE(text.find(R"(<path d="M20 106L60 56L100 6" class="cf-line cf-line-ink"/>)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(<path d="M20 106H60L60 56" class="cf-line cf-line-exposed" stroke-dasharray="5 4"/>)"),
            std::string::npos)
      << text;
  figure.x = {.low = 0.0, .high = 8.0};
  figure.marks = {BarMark{.x = 4, .width = 2, .from = 0, .to = 5, .role = Role::local}};
  EXPECT_NE(svg_in_page(figure).find(R"(<rect x="50" y="56" width="20" height="50" class="cf-local cf-bar"/>)"),
            std::string::npos)
      << svg_in_page(figure);
}

TEST(Svg, TheTitleOfAnAxisWithoutTicksIsInsideTheDrawing) {
  Figure figure{.id = "f", .width = 120, .height = 100};
  figure.x.label = "GPUs";
  const std::string text = svg_in_page(figure);  // The plot ends at y = 106.
  EXPECT_NE(text.find(R"(viewBox="0 0 120 138")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(y="122" class="cf-quiet" text-anchor="middle">GPUs</text>)"), std::string::npos) << text;
}

TEST(Svg, TextIsEscapedAndInvalidBytesAreReplaced) {
  EXPECT_EQ(escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(escaped("\u00b5s \u2212 \xf0\x9f\x98\x80"), "\u00b5s \u2212 \xf0\x9f\x98\x80");
  EXPECT_EQ(escaped("a\x01\xff\xc3("), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd(");
  EXPECT_EQ(escaped("\xed\xa0\x80").find('\xed'), std::string::npos) << "a lone surrogate is not a character";
  EXPECT_EQ(escaped("\xc0\xbc").find('\xc0'), std::string::npos) << "an overlong '<' is not a character";
  Figure figure;
  figure.id = "f";
  figure.title = "</title><script>";
  EXPECT_EQ(svg(figure).find("<script"), std::string::npos);
}

TEST(Ticks, AreRoundNumbersInsideTheAxis) {
  const auto labels = [](const std::vector<Tick>& ticks) {
    std::string text;
    for (const Tick& tick : ticks) {
      text += tick.label + " ";
    }
    return text;
  };
  EXPECT_EQ(labels(round_ticks(0, 1251.1, 8)), "0 200 400 600 800 1000 1200 ");
  EXPECT_EQ(labels(round_ticks(0, 0.5, 5)), "0.0 0.1 0.2 0.3 0.4 0.5 ");
  EXPECT_EQ(labels(round_ticks(-3, 7, 4)), "0 5 ");
  EXPECT_EQ(labels(decade_ticks(0.02, 2000)), "0.1 1 10 100 1000 ");
}

TEST(Wording, UnitsFollowTheLongestTime) {
  EXPECT_EQ(TimeUnit(9999us).text(1234567ns), "1234.6 \u00b5s");
  EXPECT_EQ(TimeUnit(10ms).text(1234567ns), "1.235 ms");
  EXPECT_EQ(TimeUnit(1s).text(1234567ns), "1.2 ms");
  EXPECT_EQ(TimeUnit(10s).text(1234567us), "1.235 s");
}

}  // namespace
}  // namespace commfuse::reports
