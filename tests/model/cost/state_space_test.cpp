// SPDX-License-Identifier: Apache-2.0
#include "model/cost/state_space.h"

#include <gtest/gtest.h>

#include <chrono>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// Returns 100 TFLOP/s of GEMMs and 1 TB/s of HBM, both fully reached.
Accelerator plain() {
  Accelerator accelerator;
  accelerator.sms = 100;
  accelerator.hbm_bandwidth.value = {1e12};
  accelerator.memory_bound_efficiency.value = 1.0;
  accelerator.kernel_floor.value = 2us;
  accelerator.attention.loop_efficiency.value = 1.0;
  MatrixUnit unit;
  unit.dense_peak.value = {100e12};
  accelerator.matrix_units[index_of(DType::bf16)] = unit;
  return accelerator;
}

// 1000 tokens, 4 heads of 16 in one group, states of 32, chunks of 64.
constexpr ScanSize small{.tokens = 1000, .heads = 4, .groups = 1, .head_dim = 16, .state = 32, .chunk = 64};

TEST(Scan, CountsProductsInsideChunksAndWithTheirStates) {
  // Inside: C B^T 2 x 64 x 32, times x 64 x 16 x 4, half of it masked; into states and out of them 4 x 32 x 16 x 4.
  EXPECT_EQ(scan_flops(small).count, 1000.0 * (4096 + 4096 + 8192));
}

TEST(Scan, MovesItsInputsTwiceAndItsStatesFourTimes) {
  // Per token: x twice and y 2 x 3 x 64, B and C twice 2 x 4 x 32, products 8 x 64, states 16 x 32 x 64 / 64.
  EXPECT_EQ(scan_traffic(small).count, 1000 * (384 + 256 + 512 + 512));
}

TEST(Scan, TakesTheLongerOfBothAndTheFloorOfEveryKernel) {
  EXPECT_EQ(scan_time(plain(), small), 5 * 2us + Duration{1'664'000});  // bytes: 1.664 MB at 1 TB/s
  Accelerator fast = plain();
  fast.hbm_bandwidth.value = {1e15};
  EXPECT_EQ(scan_time(fast, small), 5 * 2us + Duration{163'840});  // products: 16.384 MFLOP at 100 TFLOP/s
}

}  // namespace
}  // namespace commfuse
