// SPDX-License-Identifier: Apache-2.0
// Tests that docs/metrics.md explains every column, and that the simulator computes its worked example.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include "model/analysis/critical_path.h"
#include "model/analysis/percentiles.h"
#include "model/record/columns.h"
#include "model/record/result.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

std::string page() {
  std::ifstream in(COMMFUSE_SOURCE_DIR "/docs/metrics.md");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Returns a run of FuseRS (ring, adds on aux, four ranks): the GEMM of a shard is priced at 9 us and takes 10 us, a
/// transfer takes 12 us, an add 2 us, and issuing an op 1 us.
Simulated example() {
  StrategyOptions options;
  options.add_lane = LaneKind::aux;
  return {one_site("commfuse", SiteKind::gemm_rs, 4, options),
          {.gemm = 10us, .exchange = 12us, .elementwise = 2us, .issue = 1us, .compute = 34us},
          [](Costs& costs) {
            costs.undisturbed = costs.duration;
            for (Duration& time : costs.undisturbed) {
              time = time == Duration{10us} ? Duration{9us} : time;
            }
          }};
}

ResultRow example_row() {
  const Simulated simulated = example();
  ResultRow row;
  row.analysis = analyse(*simulated.program, simulated.costs, simulated.recorder);
  const auto makespan = [&](const Costs& costs) {
    Recorder recorder;
    Engine{}.run(plan_of(lower(simulated.program)), costs, recorder);
    return recorder.makespan().time_since_epoch();
  };
  row.ideal = makespan(with_free_communication(*simulated.program, simulated.costs));
  row.link = makespan(with_free_compute(*simulated.program, simulated.costs));
  // Four ranks of 1 PFLOP/s each do 108 GFLOP in total.
  row.mfu = 108e9 / (to_seconds(simulated.makespan()) * 4 * 1e15);
  return row;
}

TEST(MetricsPage, ExplainsEveryColumnOfWholeModels) {
  const std::string text = page();
  const std::string models = text.substr(text.find("\n## Whole models\n"));
  for (const Column& column : all_columns()) {
    const bool is_explained = column.of_layers || models.find(fmt::format("`{}`", column.name)) != std::string::npos;
    EXPECT_TRUE(is_explained) << column.name;
  }
}

TEST(MetricsPage, ExplainsEveryColumn) {
  const std::string text = page();
  for (const ResultColumn& column : result_columns()) {
    EXPECT_NE(text.find(fmt::format("\n| `{}` |", column.name)), std::string::npos) << column.name;
  }
}

TEST(MetricsPage, ShowsTheNumbersOfItsExample) {
  const std::string text = page();
  const ResultRow row = example_row();
  int shown = 0;
  for (const ResultColumn& column : result_columns()) {
    const Value value = column.value(row);
    if (const auto* number = std::get_if<double>(&value)) {
      const std::string expected = fmt::format("\n| `{}` | {:.6g} |", column.name, *number);
      EXPECT_NE(text.find(expected), std::string::npos) << expected;
      ++shown;
    }
  }
  EXPECT_GE(shown, 15);
}

TEST(MetricsPage, DrawsTheTimelineOfItsExample) {
  const Simulated simulated = example();
  const std::string text = page();
  for (const OpSpan& span : simulated.recorder.timeline()) {
    if (span.rank == 0) {
      const auto us = [](Instant instant) { return to_microseconds(instant.time_since_epoch()); };
      const std::string expected = fmt::format(" {}-{}", us(span.start), us(span.end));
      EXPECT_NE(text.find(expected), std::string::npos) << "op " << position(span.op) << expected;
    }
  }
}

TEST(MetricsPage, HasThePercentilesOfItsTenRuns) {
  const std::string text = page();
  std::vector<Duration> runs;
  std::string listed;
  for (const int run : {53, 54, 55, 55, 56, 57, 58, 60, 63, 71}) {
    runs.emplace_back(std::chrono::microseconds(run));
    listed += fmt::format(" {}", run);
  }
  EXPECT_NE(text.find("sorted (us):" + listed + "."), std::string::npos);
  const Percentiles percentiles = percentiles_of(runs);
  const auto row = [](const char* name, const Estimate& estimate) {
    const std::string range = !estimate.range ? "-"
                                              : fmt::format("{:.3g} to {:.3g}", to_microseconds(estimate.range->low),
                                                            to_microseconds(estimate.range->high));
    return fmt::format("\n| {} | {:.3g} | {} |", name, to_microseconds(estimate.value), range);
  };
  for (const std::string& expected :
       {row("mean", percentiles.mean), row("p50", percentiles.p50), row("p95", percentiles.p95)}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected;
  }
}

TEST(MetricsPage, AddsUpTheCriticalPathOfItsExample) {
  const Simulated simulated = example();
  const CriticalPath path = critical_path(lower(simulated.program), simulated.costs, simulated.recorder.timeline());
  const PathShares shares = shares_of(path, 4);
  EXPECT_EQ(shares.by_rank.front(), simulated.makespan());
  const std::string text = page();
  for (const PathKind kind : {PathKind::essential, PathKind::local, PathKind::communication, PathKind::issue}) {
    const std::string expected =
        fmt::format("\n| {} | {} |", name_of(kind), to_microseconds(shares.by_kind[static_cast<std::size_t>(kind)]));
    EXPECT_NE(text.find(expected), std::string::npos) << expected;
  }
}

}  // namespace
}  // namespace commfuse::test
