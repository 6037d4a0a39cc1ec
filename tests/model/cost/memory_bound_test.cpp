// SPDX-License-Identifier: Apache-2.0
#include "model/cost/memory_bound.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

Accelerator copier() {
  Accelerator accelerator;
  accelerator.sms = 100;
  accelerator.hbm_bandwidth.value = BytesPerSecond{2e12};
  accelerator.memory_bound_efficiency.value = 0.5;
  accelerator.sm_bandwidth.value = BytesPerSecond{50e9};
  accelerator.kernel_floor.value = 2us;
  return accelerator;
}

TEST(MemoryBoundTime, IsTheFloorAndTheTrafficAtTheReachedBandwidth) {
  // 10 MB / (2 TB/s x 0.5) = 10 us, plus a floor of 2 us.
  EXPECT_EQ(memory_bound_time(copier(), Bytes{10'000'000}, 100), Duration{12us});
}

TEST(MemoryBoundTime, AFewSmsMoveLess) {
  // 10 SMs x 50 GB/s = 0.5 TB/s: 20 us. 20 SMs reach the full bandwidth.
  EXPECT_EQ(memory_bound_time(copier(), Bytes{10'000'000}, 10), Duration{22us});
  EXPECT_EQ(memory_bound_time(copier(), Bytes{10'000'000}, 20), Duration{12us});
}

TEST(MemoryBoundTime, NoTrafficTakesNoTime) { EXPECT_EQ(memory_bound_time(copier(), Bytes{0}, 100), Duration{0}); }

TEST(MemoryBoundTimeDeathTest, RequiresSmsAndTrafficInRange) {
  EXPECT_DEATH(memory_bound_time(copier(), Bytes{1}, 0), "the SM budget lies between");
  EXPECT_DEATH(memory_bound_time(copier(), Bytes{-1}, 1), "traffic is not negative");
}

}  // namespace
}  // namespace commfuse
