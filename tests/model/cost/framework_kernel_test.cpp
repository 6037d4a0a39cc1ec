// SPDX-License-Identifier: Apache-2.0
#include "model/cost/framework_kernel.h"

#include <gtest/gtest.h>

#include "model/cost/memory_bound.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// Returns 100 SMs that hold 200 thread blocks, 1 TB/s of HBM, and an L2 of 10 MB, of which 60% caches the input.
Accelerator made_up_accelerator() {
  Accelerator accelerator;
  accelerator.sms = 100;
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.l2_capacity = Bytes{10'000'000};
  accelerator.memory_bound_efficiency.value = 0.5;
  accelerator.sm_bandwidth.value = BytesPerSecond{50e9};
  accelerator.kernel_floor.value = 3us;
  FrameworkKernels& kernels = accelerator.framework_kernels.emplace();
  kernels.floor.value = 1us;
  kernels.sum_efficiency.value = 0.8;
  kernels.cached_saving.value = 0.5;
  kernels.norm_efficiency.value = 0.5;
  kernels.norm_step.value = 2us;
  kernels.activation_efficiency.value = 0.25;
  kernels.rotation_efficiency.value = 0.1;
  kernels.rotation_step.value = 1us;
  return accelerator;
}

TEST(FrameworkKernelTime, CachedBytesShortenASum) {
  // All 4 MB are cached, and half of them is saved: 2 MB / 0.8 TB/s. Of 100 MB only 6 are cached: 97 MB / 0.8 TB/s.
  const auto sum = [](std::int64_t bytes) {
    return framework_kernel_time(made_up_accelerator(), {.rows = 8, .width = 8, .traffic = Bytes{bytes}});
  };
  EXPECT_EQ(sum(4'000'000), Duration{1us} + 2500ns);
  EXPECT_EQ(sum(100'000'000), Duration{1us} + 121'250ns);
  EXPECT_EQ(sum(0), Duration{1us});
}

TEST(FrameworkKernelTime, FewRowsTakeWavesOfBlocks) {
  const auto norm = [](std::int64_t rows, std::int64_t width) {
    return framework_kernel_time(made_up_accelerator(),
                                 {.kernel = FrameworkKernel::norm, .rows = rows, .width = width});
  };
  EXPECT_EQ(norm(1, 1024), Duration{3us});    // One wave of one step.
  EXPECT_EQ(norm(200, 4096), Duration{9us});  // Four steps.
  EXPECT_EQ(norm(201, 4096), Duration{17us});
  EXPECT_EQ(norm(200, 4097), Duration{11us});
}

TEST(FrameworkKernelTime, IsBandwidthBoundForManyBytes) {
  const auto time = [](FrameworkKernel kernel) {
    return framework_kernel_time(made_up_accelerator(),
                                 {.kernel = kernel, .rows = 1, .width = 1, .traffic = Bytes{1'000'000'000}});
  };
  EXPECT_EQ(time(FrameworkKernel::activation), Duration{4001us});  // Its steps are free here.
  EXPECT_NEAR(to_microseconds(time(FrameworkKernel::norm)), 2001.0, 1e-3);
  EXPECT_NEAR(to_microseconds(time(FrameworkKernel::rotation)), 10'001.0, 1e-3);
}

TEST(FrameworkKernelTime, CombinesBothLimitsByFourthPowers) {
  // 2 us of steps and 2 us of bytes: 2^(1/4) x 2 us.
  const Duration time = framework_kernel_time(
      made_up_accelerator(), {.kernel = FrameworkKernel::norm, .rows = 1, .width = 1024, .traffic = Bytes{1'000'000}});
  EXPECT_NEAR(to_microseconds(time), 1.0 + 2.0 * 1.189207115, 1e-6);
}

TEST(FrameworkKernelTime, WithoutMeasurementsIsTheTimeOfAMemoryBoundKernel) {
  Accelerator accelerator = made_up_accelerator();
  accelerator.framework_kernels.reset();
  const FrameworkKernelSize size{.kernel = FrameworkKernel::norm, .rows = 5, .width = 5, .traffic = Bytes{1'000'000}};
  EXPECT_EQ(framework_kernel_time(accelerator, size), memory_bound_time(accelerator, size.traffic, 100));
}

TEST(FrameworkKernelTimeDeathTest, RequiresRows) {
  EXPECT_DEATH(framework_kernel_time(made_up_accelerator(), {.rows = 0}), "a kernel has rows");
}

}  // namespace
}  // namespace commfuse
