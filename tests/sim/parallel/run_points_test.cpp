// SPDX-License-Identifier: Apache-2.0
// Tests that a list of points has the same rows as each point run separately, for any number of threads, and that a run
// stops on request.
#include "sim/parallel/run_points.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "reports/rows.h"
#include "sim/point/grid.h"
#include "tests/sim/grid_of.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

/// Returns 60 points, of which those on 3 ranks cannot run.
Grid some_grid() {
  return test::grid_of({"uncertainty=off", "strategy.name=serial,sliced"}, {"ranks=2,3,4", "seq=4K..80K+4K"});
}

std::string text_of(const std::vector<std::vector<ResultRow>>& rows) {
  std::string text;
  for (const std::vector<ResultRow>& point_rows : rows) {
    text += reports::to_csv(point_rows) + "\n";
  }
  return text;
}

class RunPointsOfAList : public testing::TestWithParam<int> {};

TEST_P(RunPointsOfAList, PassesOnTheRowsInTheOrderOfThePoints) {
  const Grid grid = some_grid();
  const Library library = library_of(grid);
  const PointList list(grid, max_run_points);
  std::vector<std::vector<ResultRow>> rows;
  std::size_t feasible = 0;
  run_points(list, library, {.threads = GetParam(), .finished = [&](bool is_feasible) { feasible += is_feasible; }},
             [&](std::span<const ResultRow> point_rows) { rows.emplace_back(point_rows.begin(), point_rows.end()); });
  EXPECT_EQ(rows.size(), list.size());
  EXPECT_EQ(text_of(rows), text_of(run_points(points_of(grid), library, {.threads = 1})));
  EXPECT_EQ(feasible, 40U);
}

TEST_P(RunPointsOfAList, StopsOnRequest) {
  const Grid grid = some_grid();
  const Library library = library_of(grid);
  const PointList list(grid, max_run_points);
  std::atomic<bool> stop{false};
  std::size_t calls = 0;
  const auto run = [&] {
    run_points(list, library, {.threads = GetParam(), .stop = &stop}, [&](std::span<const ResultRow> /*rows*/) {
      ++calls;
      stop = true;
    });
  };
  EXPECT_THROW(run(), Interrupted);
  EXPECT_GT(calls, 0U);
  EXPECT_LT(calls, list.size());
}

TEST_P(RunPointsOfAList, RethrowsExceptionsOfTheConsumer) {
  const Grid grid = some_grid();
  const Library library = library_of(grid);
  const PointList list(grid, max_run_points);
  const auto run = [&] {
    run_points(list, library, {.threads = GetParam()},
               [](std::span<const ResultRow> /*rows*/) { throw std::runtime_error("full"); });
  };
  EXPECT_THROW(run(), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Threads, RunPointsOfAList, testing::Values(1, 2),
                         [](const auto& threads) { return std::to_string(threads.param); });

TEST(RequireAllRunnable, ReportsTheFirstImpossiblePointAsRunDoes) {
  const Grid grid = some_grid();
  const Library library = library_of(grid);
  const std::string by_list =
      test::message_of<std::exception>([&] { require_all_runnable(PointList(grid, max_run_points), library); });
  EXPECT_FALSE(by_list.empty());
  EXPECT_EQ(by_list, test::message_of<std::exception>([&] { require_all_runnable(points_of(grid), library); }));
}

}  // namespace
}  // namespace commfuse
