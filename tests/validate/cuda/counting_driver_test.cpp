// SPDX-License-Identifier: Apache-2.0
// Tests the driver that runs nothing: it counts the launches that executors and probes issue, and adds up the times
// that StatedCosts gives them.
#include "validate/cuda/counting_driver.h"

#include <gtest/gtest.h>

#include <chrono>

#include "validate/bench/micro_program.h"
#include "validate/cuda/probes.h"
#include "validate/cuda/virtual_executor.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;

TEST(CountingDriver, CountsCallsAndAddsTheirStatedTimes) {
  CountingDriver driver({.launch = 5us, .library_products = {1e12}, .memory = {1e9}});
  const Panel square{0, 1000, 1000, 1000, DType::bf16};
  driver.product(StreamId{0}, {.a = square, .b = square, .out = square, .sum_order = SumOrder::blocked});
  EXPECT_EQ(driver.device_time(), 2ms);  // 2e9 FLOPs at 1e12 FLOP/s
  driver.move(StreamId{0}, {.parts = {{square, square}}, .wire = DType::bf16});
  EXPECT_EQ(driver.device_time(), 6ms);  // 2 MB read and written at 1 GB/s
  driver.spin(StreamId{0}, 1us);
  EXPECT_EQ(driver.device_time(), 6ms + 5us);  // at least a launch
  EXPECT_EQ(driver.launches(), 3);
}

TEST(CountingDriver, AnExecutorIssuesOneLaunchPerGemmOfEveryIteration) {
  CountingDriver driver;
  Device device(driver);
  const MicroProgram micro = product_alone(2, {.m = 8, .n = 8, .k = 8});
  VirtualExecutor executor(lower(micro.program), micro.sizes, device, {.random_data = true});
  const std::int64_t before = driver.launches();
  executor.run({.sum_order = SumOrder::blocked, .iterations = 3});
  EXPECT_EQ(driver.launches() - before, 2 * 3);  // a GEMM on each of two ranks, three times
}

TEST(CountingDriver, AColdRunOverwritesTheCacheBeforeEveryIteration) {
  for (const LaunchMode mode : {LaunchMode::stream, LaunchMode::gated}) {
    CountingDriver driver;
    Device device(driver);
    const MicroProgram micro = product_alone(2, {.m = 8, .n = 8, .k = 8});
    VirtualExecutor executor(lower(micro.program), micro.sizes, device,
                             {.mode = mode, .random_data = true, .cold_level2 = true});
    executor.run({.sum_order = SumOrder::blocked});
    const std::int64_t before = driver.launches();
    const Execution execution = executor.run({.sum_order = SumOrder::blocked});
    const std::int64_t launches_per_run = driver.launches() - before;
    executor.run({.sum_order = SumOrder::blocked, .iterations = 3});
    // Two more iterations, each of two GEMMs and the kernel that overwrites the cache.
    EXPECT_EQ(driver.launches() - before - launches_per_run, launches_per_run + 2 * 3);
    // Overwriting the cache takes 52 us, which is not part of the run's time.
    EXPECT_LT(execution.makespan, 40us);
  }
}

TEST(CountingDriver, EveryProbeStageExceptNcclIssuesLaunches) {
  for (const ProbeStage& stage : probe_stages()) {
    CountingDriver driver;
    Device device(driver);
    static_cast<void>(stage.run(device, {.quick = true}));
    EXPECT_EQ(driver.launches() > 0, stage.name != "nccl") << stage.name;  // that stage needs NCCL
  }
}

}  // namespace
}  // namespace commfuse::validate
