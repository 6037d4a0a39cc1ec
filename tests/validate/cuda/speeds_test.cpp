// SPDX-License-Identifier: Apache-2.0
// Tests that no schedule hangs and that its results are bitwise identical, whatever the speeds of its streams: the
// plugin on the software GPU, whose streams have random delays, runs schedules of every strategy on 1 to 8 ranks
// repeatedly, as virtual ranks on one GPU and as NCCL ranks with one GPU each. SOFTWARE_GPU_SPEEDS is the number of
// runs of each schedule: 2 by default, 20 in .ci/full.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/slow_build.h"
#include "tests/validate/reference/matrices.h"
#include "validate/cuda/load.h"
#include "validate/cuda/nccl_executor.h"
#include "validate/cuda/virtual_executor.h"
#include "validate/reference/check_point.h"
#include "validate/reference/data.h"
#include "validate/reference/interpreter.h"

namespace commfuse::validate {
namespace {

using test::points_of;
using test::shared;

/// A run without progress for this long counts as hanging.
constexpr Duration watchdog = std::chrono::seconds(60);

int speeds() {
  const char* text = std::getenv("SOFTWARE_GPU_SPEEDS");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return text == nullptr ? 2 : std::atoi(text);           // NOLINT(cert-err34-c): .ci/full sets it
}

/// Returns the contents in `executor` of all buffers of the ranks that `holder` holds.
std::vector<Matrix<float>> memory_of(const Executor& executor, const Executor& holder) {
  const Program& program = executor.program();
  std::vector<Matrix<float>> memory;
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    for (std::size_t id = 0; holder.holds(rank) && id < program.buffers.size(); ++id) {
      const Buffer& buffer = program.buffers[id];
      memory.push_back(executor.fetch(rank, {.buffer = BufferId{static_cast<std::int32_t>(id)},
                                             .rows = buffer.rows.blocks,
                                             .columns = buffer.columns.blocks}));
    }
  }
  return memory;
}

bool same_bits(const std::vector<Matrix<float>>& left, const std::vector<Matrix<float>>& right) {
  return std::ranges::equal(left, right, [](const Matrix<float>& a, const Matrix<float>& b) {
    return std::ranges::equal(a.values(), b.values(), [](float x, float y) {
      return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
    });
  });
}

/// Runs a schedule `times` times, each time at different speeds, on integers, whose sums have the same bits in every
/// order. Returns the names of the runs whose memory differs from the interpreter's. A run that hangs throws an
/// exception. Because the order of sums does not matter, GEMMs use the library's kernels (SumOrder::blocked), which
/// take a third of the processor time of kernels that sum in ascending order.
std::vector<std::string> wrong_runs(Executor& executor, int times) {
  const Program& program = executor.program();
  const std::vector<Matrix<float>> inputs = integer_data(program, executor.sizes(), 1).inputs;
  Interpreter interpreter(lower(std::make_shared<const Program>(program)), executor.sizes());
  interpreter.prepare(inputs);
  interpreter.run({.functions = Functions::integer});
  const std::vector<Matrix<float>> expected = memory_of(interpreter, executor);
  std::vector<std::string> wrong;
  for (int speed = 0; speed < times; ++speed) {
    const std::string run = program.name + " at speed " + std::to_string(speed);
    executor.prepare(inputs);
    executor.run(
        {.functions = Functions::integer, .sum_order = SumOrder::blocked, .order = static_cast<std::uint64_t>(speed)});
    if (!same_bits(memory_of(executor, executor), expected)) {
      wrong.push_back(run + ": bits differ from the interpreter's");
    }
  }
  return wrong;
}

/// Returns, for every operation, the first schedule of every strategy.
std::vector<CheckPoint> schedules_on(std::int32_t ranks) {
  std::vector<CheckPoint> points;
  for (const CheckedOperation& operation : checked_operations()) {
    const Strategy* last = nullptr;
    for (const CheckPoint& point : points_of(operation, ranks, DType::bf16)) {
      if (point.strategy != last) {
        points.push_back(point);
      }
      last = point.strategy;
    }
  }
  return points;
}

class EverySpeed : public testing::TestWithParam<std::int32_t> {
 protected:
  static void SetUpTestSuite() {
    // NOLINTBEGIN(concurrency-mt-unsafe): before the plugin's threads
    ::setenv("SOFTWARE_GPU_DEVICES", "8", 1);
    ::setenv("SOFTWARE_GPU_MULTIPROCESSORS", "8", 1);  // kernels with few blocks
    // NOLINTEND(concurrency-mt-unsafe)
    plugin_ = std::make_unique<CudaPlugin>(load_cuda_plugin(COMMFUSE_SOFTWARE_GPU));
  }
  static void TearDownTestSuite() { plugin_ = nullptr; }
  void SetUp() override {
    ASSERT_TRUE(plugin_->usable()) << plugin_->missing;
    if (slow_build && GetParam() > 4) {
      GTEST_SKIP() << "slow builds test at most four ranks";
    }
    if (plugin_->module->devices() < GetParam()) {
      GTEST_SKIP() << "the software GPU was loaded with fewer devices by another test of this process";
    }
  }
  static const CudaModule& module() { return *plugin_->module; }

 private:
  static inline std::unique_ptr<CudaPlugin> plugin_;
};
INSTANTIATE_TEST_SUITE_P(OneToEight, EverySpeed, testing::Range(1, 9));

TEST_P(EverySpeed, GivesVirtualRanksTheSameBits) {
  const std::unique_ptr<Driver> driver = module().open(0);
  Device device(*driver);
  for (const CheckPoint& point : schedules_on(GetParam())) {
    const auto program = shared(program_of(point));
    VirtualExecutor executor(lower(program), checked_sizes(*program)[0], device,
                             {.link = {.ctas = 2}, .patience = watchdog});
    EXPECT_EQ(wrong_runs(executor, speeds()), std::vector<std::string>{});
  }
}

/// Runs the schedules on `count` ranks with one GPU each, connected by NCCL with these options. Returns each rank's
/// wrong runs and errors.
std::vector<std::vector<std::string>> wrong_by_rank(const CudaModule& module, int count,
                                                    const std::vector<CheckPoint>& points, NetworkOptions options) {
  options.patience = watchdog;
  const NetworkKey key = module.make_key();
  std::vector<std::vector<std::string>> wrong(static_cast<std::size_t>(count));
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < count; ++rank) {
    ranks.emplace_back([&, rank] {
      std::vector<std::string>& mine = wrong[static_cast<std::size_t>(rank)];
      std::string stage = "connecting";
      try {
        const std::unique_ptr<Driver> driver = module.open(rank);
        Device device(*driver);
        const std::unique_ptr<Network> network = module.connect(*driver, key, rank, count, options);
        Communicators communicators(*network);
        for (const CheckPoint& point : points) {
          const auto program = shared(program_of(point));
          stage = program->name;
          NcclExecutor executor(lower(program), checked_sizes(*program)[0], device, communicators,
                                {.patience = watchdog});
          std::ranges::move(wrong_runs(executor, speeds()), std::back_inserter(mine));
        }
      } catch (const std::exception& error) {
        mine.push_back(stage + ": " + error.what());
      }
    });
  }
  ranks.clear();
  return wrong;
}

TEST_P(EverySpeed, GivesNcclRanksTheSameBits) {
  const std::vector<std::vector<std::string>> nothing(static_cast<std::size_t>(GetParam()));
  EXPECT_EQ(wrong_by_rank(module(), GetParam(), schedules_on(GetParam()), {}), nothing);
}

/// Runs schedules of an operation that gathers and of one that scatters; if the number of ranks is odd, over fp8 wires.
TEST_P(EverySpeed, GivesTheSameBitsWithNcclPutsAndWindows) {
  std::vector<CheckPoint> points;
  for (CheckPoint point : schedules_on(GetParam())) {
    if (point.operation->name == "ag_gemm" || point.operation->name == "gemm_rs") {
      point.wire = GetParam() % 2 == 1 ? std::optional(DType::fp8) : std::nullopt;
      points.push_back(point);
    }
  }
  const std::vector<std::vector<std::string>> nothing(static_cast<std::size_t>(GetParam()));
  EXPECT_EQ(wrong_by_rank(module(), GetParam(), points, {.puts = true}), nothing);
  EXPECT_EQ(wrong_by_rank(module(), GetParam(), points, {.registered = true, .windows = true}), nothing);
}

}  // namespace
}  // namespace commfuse::validate
