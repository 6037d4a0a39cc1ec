// SPDX-License-Identifier: Apache-2.0
#include "model/cost/state_space.h"

#include <gtest/gtest.h>

#include <chrono>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// Returns an accelerator whose GEMMs reach its peak of 100 TFLOP/s, and whose kernels reach 1 TB/s of HBM.
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
constexpr ScanSize small_scan{.tokens = 1000, .heads = 4, .groups = 1, .head_dim = 16, .state = 32, .chunk = 64};

TEST(Scan, CountsGemmsInsideChunksAndWithTheirStates) {
  // FLOPs per token: 2 * 64 * 32 for C B^T inside the chunk, 64 * 16 * 4 for its product with x, of which half is
  // masked, and 4 * 32 * 16 * 4 into the states and out of them.
  EXPECT_EQ(scan_flops(small_scan).count, 1000.0 * (4096 + 4096 + 8192));
}

TEST(Scan, MovesItsInputsTwiceAndItsStatesFourTimes) {
  // Bytes per token: 2 * 3 * 64 for y and two reads of x, 2 * 4 * 32 for two reads of B and C, 8 * 64 for the inner
  // products, and 16 * 32 * 64 / 64 for the states.
  EXPECT_EQ(scan_traffic(small_scan).count, 1000 * (384 + 256 + 512 + 512));
}

TEST(Scan, TakesTheLongerOfComputeAndTrafficAndEveryFloor) {
  EXPECT_EQ(scan_time(plain(), small_scan), 5 * 2us + Duration{1'664'000});  // traffic: 1.664 MB at 1 TB/s
  Accelerator fast = plain();
  fast.hbm_bandwidth.value = {1e15};
  EXPECT_EQ(scan_time(fast, small_scan), 5 * 2us + Duration{163'840});  // compute: 16.384 MFLOP at 100 TFLOP/s
}

}  // namespace
}  // namespace commfuse
