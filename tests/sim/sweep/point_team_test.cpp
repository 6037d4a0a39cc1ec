// SPDX-License-Identifier: Apache-2.0
// Tests the threads of one process: they simulate simultaneously, and the result equals that of one thread.
#include "sim/sweep/point_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/point/grid.h"
#include "tests/sim/grid_of.h"

namespace commfuse {
namespace {

class PointTeamTest : public testing::Test {
 protected:
  PointTeamTest() : grid_(grid()), library_(library_of(grid_)), list_(grid_, 1000) {}

  static Grid grid() {
    return test::grid_of({"model=llama-3.1-8b", "uncertainty=off", "strategy.name=serial"},
                         {"ranks=2,4", "seq=1K..50K+1K"});
  }

  [[nodiscard]] std::vector<std::size_t> points() const {
    std::vector<std::size_t> numbers(list_.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    return numbers;
  }

  std::vector<StoredPoint> simulate_on(int threads) {
    SimulatorFactory factory(library_, StoreKind::layers);
    PointTeam team(
        list_, [&] { return factory.make(); }, threads);
    return team.simulate(points(), nullptr);
  }

  Grid grid_;
  Library library_;
  PointList list_;
};

TEST_F(PointTeamTest, ManyThreadsReturnTheRowsOfOneInTheOrderOfThePoints) {
  const std::vector<StoredPoint> serial = simulate_on(1);
  ASSERT_EQ(serial.size(), 100U);
  const std::vector<StoredPoint> parallel = simulate_on(4);
  ASSERT_EQ(parallel.size(), serial.size());
  for (std::size_t i = 0; i < serial.size(); ++i) {
    EXPECT_EQ(serial[i].point, i);
    EXPECT_EQ(parallel[i].point, i);
    EXPECT_EQ(parallel[i].rows, serial[i].rows);
  }
}

/// Holds every thread that enters it until enough are inside, or a minute has passed.
class Gate {
 public:
  explicit Gate(std::size_t wanted) : wanted_(wanted) {}
  void enter() {
    std::unique_lock lock(mutex_);
    inside_.insert(std::this_thread::get_id());
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::minutes(1), [&] { return inside_.size() >= wanted_; });
  }
  std::size_t threads() {
    const std::scoped_lock lock(mutex_);
    return inside_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::thread::id> inside_;
  std::size_t wanted_;
};

// The team has the requested number of threads even if the machine, or the process, has fewer cores.
TEST_F(PointTeamTest, SimulatesWithTheRequestedNumberOfThreads) {
  Gate gate(5);
  PointTeam team(
      list_,
      [&]() -> SimulatePoint {
        return [&](const Settings&) {
          gate.enter();
          return std::vector<StoreRow>();
        };
      },
      5);
  EXPECT_EQ(team.simulate(points(), nullptr).size(), 100U);
  EXPECT_EQ(gate.threads(), 5U);
}

TEST_F(PointTeamTest, OneThreadIsTheThreadOfTheCaller) {
  std::set<std::thread::id> ids;
  PointTeam team(
      list_,
      [&]() -> SimulatePoint {
        return [&](const Settings&) {
          ids.insert(std::this_thread::get_id());
          return std::vector<StoreRow>();
        };
      },
      1);
  team.simulate(points(), nullptr);
  EXPECT_EQ(ids, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST_F(PointTeamTest, AStopKeepsStartedPoints) {
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> begun{0};
  PointTeam team(
      list_,
      [&]() -> SimulatePoint {
        return [&](const Settings&) {
          stop = ++begun >= 7;
          return std::vector<StoreRow>();
        };
      },
      3);
  const std::vector<StoredPoint> simulated = team.simulate(points(), &stop);
  EXPECT_EQ(simulated.size(), begun.load());
  EXPECT_GE(simulated.size(), 7U);
  EXPECT_LT(simulated.size(), 100U);
}

TEST_F(PointTeamTest, RethrowsExceptionsOfSimulations) {
  PointTeam team(
      list_,
      []() -> SimulatePoint {
        return [](const Settings&) -> std::vector<StoreRow> { throw std::runtime_error("no memory"); };
      },
      4);
  EXPECT_THROW(team.simulate(points(), nullptr), std::runtime_error);
}

TEST(BoundThreads, AreReportedWhereTheMachineHasMoreCores) {
  EXPECT_EQ(
      warning_of_bound_threads(8, {.allowed = 1, .online = 16}),
      "8 threads share 1 of this machine's 16 cores: the launcher binds each process; with Open MPI, add --bind-to "
      "none to mpirun\n");
  EXPECT_EQ(warning_of_bound_threads(1, {.allowed = 1, .online = 16}), "");  // The process may use no more cores.
  EXPECT_EQ(warning_of_bound_threads(8, {.allowed = 4, .online = 4}), "");   // The machine has no more cores.
  EXPECT_EQ(warning_of_bound_threads(8, {.allowed = 8, .online = 16}), "");
  const Cores cores = cores_of_this_process();
  EXPECT_GE(cores.online, cores.allowed);
  EXPECT_GE(cores.allowed, 1);
}

}  // namespace
}  // namespace commfuse
