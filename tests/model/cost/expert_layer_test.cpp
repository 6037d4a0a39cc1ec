// SPDX-License-Identifier: Apache-2.0
#include "model/cost/expert_layer.h"

#include <gtest/gtest.h>

#include <string>

#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;
using test::in_microseconds;

/// Memory and matrix units so fast that they take no time unless a test makes them slow, and calls of 10 us.
Accelerator accelerator_with_experts() {
  Accelerator accelerator = h100_accelerator();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e24};
  accelerator.sm_bandwidth.value = BytesPerSecond{1e24};
  accelerator.matrix_units[index_of(DType::bf16)]->dense_peak.value = FlopsPerSecond{1e24};
  ExpertLayer layer;
  layer.call.value = in_microseconds(10.0);
  layer.hbm_efficiency.value = 0.5;
  layer.sm_loads.value = 1.0;
  layer.matrix_share.value = 0.5;
  layer.uneven_time.value = 1.5;
  accelerator.experts = layer;
  return accelerator;
}

/// Four experts on this GPU with 128 tokens each, two tiles of 64 rows.
constexpr ExpertLayerSize two_tiles{.tokens = 512, .hidden = 256, .ffn = 128, .active = 2, .experts = 8, .ep = 2};

void make_compute_slow(Accelerator& accelerator) {
  accelerator.matrix_units[index_of(DType::bf16)]->dense_peak.value = FlopsPerSecond{1e12};
}

TEST(ExpertLayer, BalancedLoadsUseTheExpertsInTurn) {
  const auto load = [](std::int64_t tokens, std::int64_t ep) {
    return expert_load({.tokens = tokens, .active = 2, .experts = 8, .ep = ep});
  };
  EXPECT_EQ(load(16, 1).rows, 32.0);
  EXPECT_EQ(load(16, 1).hit, 8.0);
  EXPECT_EQ(load(16, 1).tiles, 8.0);
  EXPECT_EQ(load(2, 1).hit, 4.0);
  EXPECT_EQ(load(1, 4).rows, 1.0);  // the GPU with the most tokens
  EXPECT_EQ(load(1, 4).hit, 1.0);
  EXPECT_EQ(load(512, 2).rows, 512.0);
  EXPECT_EQ(load(512, 2).tiles, 8.0);
}

// The expected values are means of 100 draws from the same power law.
TEST(ExpertLayer, UnevenLoadsFollowAPowerLaw) {
  const auto load = [](std::int64_t tokens, std::int64_t ep) {
    return expert_load({.tokens = tokens, .active = 8, .experts = 128, .ep = ep, .exponent = 1.2});
  };
  EXPECT_NEAR(load(1024, 1).rows, 8192.0, 1e-6);
  EXPECT_NEAR(load(1024, 16).rows / 512.0, 2.6, 0.1);
  EXPECT_NEAR(load(1024, 128).rows / 64.0, 10.4, 0.8);
  EXPECT_NEAR(load(64, 1).hit, 118.0, 6.0);
  EXPECT_NEAR(load(1024, 1).tiles, 225.0, 12.0);
}

TEST(ExpertLayer, NoExpertHasMoreThanAllTokens) {
  const ExpertLoad load = expert_load({.tokens = 16384, .active = 2, .experts = 8, .exponent = 1.2});
  EXPECT_NEAR(load.rows, 32768.0, 1e-6);
  const ExpertLoad busiest = expert_load({.tokens = 64, .active = 4, .experts = 4, .ep = 4, .exponent = 1.2});
  EXPECT_NEAR(busiest.rows, 64.0, 1e-9);
}

TEST(ExpertLayer, AnExponentOfOneIsBetweenItsNeighbours) {
  const auto rows = [](double exponent) {
    return expert_load({.tokens = 4096, .active = 8, .experts = 128, .ep = 16, .exponent = exponent}).rows;
  };
  EXPECT_LT(rows(0.99), rows(1.0));
  EXPECT_LT(rows(1.0), rows(1.01));
  EXPECT_NEAR(rows(1.0), rows(1.000001), 0.1);
}

TEST(ExpertLayer, MultipliesWholeTiles) {
  Accelerator accelerator = accelerator_with_experts();
  make_compute_slow(accelerator);
  // 16 tiles of 64 x 128 over 256 elements and 16 over 128, at half of 1 TFLOP/s.
  EXPECT_EQ(expert_layer_time(accelerator, two_tiles), in_microseconds(10.0 + 201.326592));
  EXPECT_EQ(expert_limit_of(accelerator, expert_work(two_tiles)), Limit::compute);
  accelerator.experts->loop_start.value = 128.0;
  EXPECT_EQ(expert_layer_time(accelerator, two_tiles), in_microseconds(10.0 + 335.54432));
  accelerator.experts->loop_start.value = 0.0;
  ExpertLayerSize changed = two_tiles;
  changed.gated = false;  // half as many columns in the first GEMM
  EXPECT_EQ(expert_layer_time(accelerator, changed), in_microseconds(10.0 + 134.217728));
  changed = two_tiles;
  changed.exponent = 1.2;
  EXPECT_EQ(expert_layer_time(accelerator, changed, expert_load(two_tiles)), in_microseconds(10.0 + 301.989888));
}

TEST(ExpertLayer, ReadsTheWeightsOfTheExpertsThatAreHit) {
  Accelerator accelerator = accelerator_with_experts();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  // Four experts of 3 x 256 x 128 elements of 2 bytes at 0.5 TB/s.
  EXPECT_EQ(expert_layer_time(accelerator, two_tiles), in_microseconds(10.0 + 1.572864));
  EXPECT_EQ(expert_limit_of(accelerator, expert_work(two_tiles)), Limit::latency);
  accelerator.experts->row_traffic.value = 3.0;
  // 512 rows of 256 + 256 and 128 + 256 elements, three times at 1 TB/s.
  EXPECT_EQ(expert_layer_time(accelerator, two_tiles), in_microseconds(10.0 + 1.572864 + 2.752512));
  accelerator.experts->row_traffic.value = 30.0;
  EXPECT_EQ(expert_limit_of(accelerator, expert_work(two_tiles)), Limit::bandwidth);
}

TEST(ExpertLayer, FewColumnsLoadNoFasterThanTheirSms) {
  Accelerator accelerator = accelerator_with_experts();
  accelerator.sm_bandwidth.value = BytesPerSecond{1e9};
  accelerator.experts->sm_loads.value = 2.0;
  // Each GEMM has 4 x 2 blocks of 128 columns, each of which is loaded at 2 GB/s.
  EXPECT_EQ(expert_layer_time(accelerator, two_tiles), in_microseconds(10.0 + 32.768 + 16.384));
}

TEST(ExpertLayer, SortsAllTokensAndWritesTheirOutputs) {
  Accelerator accelerator = accelerator_with_experts();
  accelerator.experts->expert.value = in_microseconds(0.5);   // four of them
  accelerator.experts->choices.value = in_microseconds(1.0);  // 1,024 pairs
  EXPECT_EQ(expert_layer_time(accelerator, two_tiles), in_microseconds(10.0 + 2.0 + 1.0));
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.experts->hbm_efficiency.value = 1e12;
  accelerator.experts->token_traffic.value = 2.0;
  EXPECT_EQ(expert_layer_time(accelerator, two_tiles), in_microseconds(13.0 + 1.048576));
}

TEST(ExpertLayer, Fp8HasParametersOfItsOwnAndNeedsItsMatrixUnit) {
  Accelerator accelerator = accelerator_with_experts();
  accelerator.matrix_units[index_of(DType::fp8)]->dense_peak.value = FlopsPerSecond{1e24};
  accelerator.experts_fp8 = accelerator.experts;
  accelerator.experts_fp8->call.value = in_microseconds(7.0);
  ExpertLayerSize size = two_tiles;
  size.dtype = DType::fp8;
  EXPECT_EQ(expert_layer_time(accelerator, size), in_microseconds(7.0));
  accelerator.matrix_units[index_of(DType::fp8)].reset();
  EXPECT_EQ(expert_layer_of(accelerator, DType::fp8), nullptr);
  EXPECT_NE(expert_layer_of(accelerator, DType::bf16), nullptr);
}

TEST(ExpertLayer, MoreTokensTakeNoLessTime) {
  for (const char* const name : {"a100-sxm-80", "h100-sxm", "b200-sxm"}) {
    const Accelerator accelerator = test::shipped_machine(std::string("hardware/") + name + ".yaml").accelerator;
    ASSERT_TRUE(accelerator.experts.has_value()) << name;
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
      const PhiloxWords words = philox({seed, 0, 0, 0}, 13);
      ExpertLayerSize size{.tokens = 1 + words[0] % 20'000,
                           .hidden = 128 * (1 + words[1] % 64),
                           .ffn = 128 * (1 + words[1] / 64 % 64),
                           .active = 1 + words[2] % 16,
                           .experts = 16 << (words[2] / 16 % 6),
                           .tp = 1 << (words[2] / 128 % 4),
                           .ep = 1 << (words[2] / 1024 % 5)};
      const Duration time = expert_layer_time(accelerator, size);
      size.tokens += 1 + words[3] % 5000;
      EXPECT_LE(time, expert_layer_time(accelerator, size)) << name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace commfuse
