// SPDX-License-Identifier: Apache-2.0
// Distributes points among processes, which are threads here: each point is simulated once, by any process.
#include "sim/sweep/handout.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/point/grid.h"
#include "tests/sim/grid_of.h"
#include "tests/validate/mpi/threads_world.h"

namespace commfuse {
namespace {

using validate::test::on_processes;

class Handout : public testing::Test {
 protected:
  Handout() : grid_(grid()), library_(library_of(grid_)), list_(grid_, 1000) {}

  static Grid grid() {
    return test::grid_of({"model=llama-3.1-8b", "uncertainty=off", "strategy.name=serial"},
                         {"ranks=2,4", "seq=1K..50K+1K"});
  }

  [[nodiscard]] std::vector<std::size_t> all_points() const {
    std::vector<std::size_t> points(list_.size());
    std::iota(points.begin(), points.end(), std::size_t{0});
    return points;
  }

  /// Simulates all points on `processes` processes and returns what each threw; `digest` returns a process's digest.
  std::vector<std::string> simulate(
      int processes, const TakePoint& take, const std::atomic<bool>* stop,
      const std::function<std::string(int)>& digest = [](int) { return "d"; }, int threads = 1) {
    return on_processes(processes, [&](World& world) {
      SimulatorFactory factory(library_, StoreKind::layers);
      SharedSweep sweep{digest(world.process()), &list_, &factory, threads};
      world.process() == 0 ? lead(world, sweep, all_points(), take, stop)
                           : follow(
                                 world, [&] { return sweep; }, stop);
    });
  }

  Grid grid_;
  Library library_;
  PointList list_;
};

TEST_F(Handout, EveryPointIsTakenOnceAndMatchesASingleProcess) {
  SimulatorFactory single_process(library_, StoreKind::layers);
  const SimulatePoint simulator = single_process.make();
  PointCursor cursor(list_);
  for (const int processes : {1, 2, 4}) {
    for (const int threads : {1, 3, 64}) {
      std::set<std::size_t> simulated_points;
      const auto thrown = simulate(
          processes,
          [&](const StoredPoint& point) {
            EXPECT_TRUE(simulated_points.insert(point.point).second);
            EXPECT_EQ(point.rows, simulator(cursor.at(point.point)));
          },
          nullptr, [](int) { return "d"; }, threads);
      EXPECT_EQ(thrown, std::vector<std::string>(static_cast<std::size_t>(processes)));
      EXPECT_EQ(simulated_points.size(), 100U);
    }
  }
}

TEST_F(Handout, AStopEndsTheRunningPointsAndAllProcesses) {
  std::atomic<bool> stop{false};
  std::size_t simulated_points = 0;
  const auto thrown = simulate(
      3, [&](const StoredPoint&) { stop = ++simulated_points >= 5; }, &stop);
  EXPECT_EQ(thrown, std::vector<std::string>(3));
  EXPECT_GE(simulated_points, 5U);
  EXPECT_LT(simulated_points, 100U);
}

TEST_F(Handout, AProcessWithOtherFilesEndsTheSweep) {
  const auto thrown = simulate(
      3, [](const StoredPoint&) {}, nullptr, [](int process) { return process == 2 ? "other" : "d"; });
  EXPECT_EQ(thrown[0],
            "process 2: the sweep or a file that it names differs from process 0; give all machines the "
            "same files");
  EXPECT_EQ(thrown[1], "");
  EXPECT_EQ(thrown[2], "");
}

TEST_F(Handout, AFailedStoreEndsTheOtherProcesses) {
  const auto thrown = simulate(
      3, [](const StoredPoint&) { throw std::runtime_error("the disk is full"); }, nullptr);
  EXPECT_EQ(thrown, (std::vector<std::string>{"the disk is full", "", ""}));
}

}  // namespace
}  // namespace commfuse
