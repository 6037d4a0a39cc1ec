// SPDX-License-Identifier: Apache-2.0
#include "model/cost/latent_decode.h"

#include <gtest/gtest.h>

#include "model/cost/memory_bound.h"
#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;
using test::in_microseconds;
using test::shipped_machine;

Accelerator h100_without_latent_fit() {
  Accelerator h100 = h100_accelerator();
  h100.latent_decode.reset();
  h100.latent_decode_fp8.reset();
  return h100;
}

/// 100 SMs, and memory and matrix units so fast that traffic and GEMMs take no time unless a test makes them slow.
Accelerator made_up_latent_accelerator() {
  Accelerator accelerator = h100_accelerator();
  accelerator.sms = 100;
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e19};
  accelerator.l2_capacity = Bytes{1'000'000'000};
  for (std::optional<MatrixUnit>& unit : accelerator.matrix_units) {
    if (unit) {
      unit->dense_peak.value = FlopsPerSecond{1e25};
    }
  }
  LatentDecodeKernel kernel;
  kernel.call.value = in_microseconds(10.0);
  kernel.hbm_efficiency.value = 0.5;
  kernel.most_parts.value = 8.0;
  kernel.loop_efficiency.value = 0.5;
  accelerator.latent_decode = kernel;
  return accelerator;
}

/// Widths of 600 and 400 sum to 1,000.
LatentDecodeSize round_size(std::int64_t batch, std::int64_t seq, std::int64_t heads) {
  return {.batch = batch, .seq = seq, .heads = heads, .key_width = 600, .value_width = 400};
}

// DeepSeek-V3 has 128 heads and narrow keys of 512 + 64 elements, of which the first 512 are also the values.
TEST(LatentDecode, WithoutAFitReadsNarrowKeysOnceOrIsBoundByGemms) {
  const Accelerator h100 = h100_without_latent_fit();
  LatentDecodeSize size{.batch = 64, .seq = 4096, .heads = 8};
  const Bytes read_bytes{64LL * (4096 * 576 + 8 * (576 + 512)) * 2};
  EXPECT_EQ(latent_decode_time(h100, size),
            h100.attention.overhead.value + memory_bound_time(h100, read_bytes, h100.sms));
  size.heads = 256;  // two tokens per sequence on 128 heads
  const double gemm_flops = 2.0 * 64 * 4096 * 256 * (576 + 512);
  const double rate = h100.dense_peak(DType::bf16).value * h100.attention.loop_efficiency.value;
  EXPECT_EQ(latent_decode_time(h100, size), h100.attention.overhead.value + from_seconds(gemm_flops / rate));
}

TEST(LatentDecode, OverWideKeysReadsTheKeysOfEveryHead) {
  const Accelerator h100 = h100_accelerator();
  const LatentDecodeSize wide{
      .batch = 64, .seq = 4096, .heads = 16, .key_width = 192, .value_width = 128, .shared = false};
  const Bytes read_bytes{64LL * (4096 + 1) * 16 * (192 + 128) * 2};
  EXPECT_EQ(latent_decode_time(h100, wide),
            h100.attention.overhead.value + memory_bound_time(h100, read_bytes, h100.sms));
}

TEST(LatentDecode, ReadsNarrowKeysAtItsShareOfTheBandwidth) {
  Accelerator accelerator = made_up_latent_accelerator();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  // 100 x 9,999 x 600 x 2 bytes of keys, and 100 x 6 x 1,000 x 2 of queries and output: 1.2 GB at 0.5 TB/s.
  const LatentDecodeSize size = round_size(100, 9999, 6);
  const Bytes moved{1'199'880'000 + 1'200'000};
  EXPECT_EQ(latent_cache_of(size), Bytes{1'199'880'000});
  EXPECT_EQ(latent_decode_time(accelerator, size),
            in_microseconds(10.0) + from_seconds(static_cast<double>(moved.count) / 0.5e12));
  EXPECT_EQ(latent_limit_of(accelerator, size), Limit::bandwidth);
  accelerator.latent_decode->memory_ramp.value = in_microseconds(4.0);
  EXPECT_EQ(latent_decode_time(accelerator, size),
            in_microseconds(14.0) + from_seconds(static_cast<double>(moved.count) / 0.5e12));
}

TEST(LatentDecode, BlocksOf64HeadsShareTheSms) {
  Accelerator accelerator = made_up_latent_accelerator();
  accelerator.latent_decode->block.value = in_microseconds(3.0);
  accelerator.latent_decode->head.value = in_microseconds(0.25);
  EXPECT_EQ(latent_decode_time(accelerator, round_size(200, 4, 64)), in_microseconds(10.0 + 2 * 3.0 + 2 * 64 * 0.25));
  EXPECT_EQ(latent_decode_time(accelerator, round_size(200, 4, 96)), in_microseconds(10.0 + 4 * 3.0 + 2 * 96 * 0.25));
  EXPECT_EQ(latent_limit_of(accelerator, round_size(200, 4, 96)), Limit::compute);
}

TEST(LatentDecode, GemmsHaveTheRowsOfWholeBlocks) {
  Accelerator accelerator = made_up_latent_accelerator();
  accelerator.matrix_units[index_of(DType::bf16)]->dense_peak.value = FlopsPerSecond{1e14};
  // 2 x 100 x 1,000 x 64 x 1,000 FLOP = 12.8 GFLOP at half of 100 TFLOP/s.
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 1000, 8)), in_microseconds(10.0 + 256.0));
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 1000, 64)), in_microseconds(10.0 + 256.0));
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 1000, 65)), in_microseconds(10.0 + 512.0));
  EXPECT_EQ(latent_limit_of(accelerator, round_size(100, 1000, 65)), Limit::compute);
}

TEST(LatentDecode, SplitsKeysUntilEverySmHasABlock) {
  Accelerator accelerator = made_up_latent_accelerator();
  accelerator.latent_decode->keys.value = in_microseconds(8.0);
  const auto time = [&](std::int64_t batch, std::int64_t keys) {
    EXPECT_EQ(latent_limit_of(accelerator, round_size(batch, keys, 4)), keys > 256 ? Limit::few_tiles : Limit::latency);
    return latent_decode_time(accelerator, round_size(batch, keys, 4));
  };
  EXPECT_EQ(time(1, 64), in_microseconds(10.0 + 2.0));
  EXPECT_EQ(time(1, 16 * 1024), in_microseconds(10.0 + 64.0));    // 8 parts, the most, of 2048 keys
  EXPECT_EQ(time(25, 4 * 1024), in_microseconds(10.0 + 32.0));    // 4 parts fill 100 SMs
  EXPECT_EQ(time(60, 16 * 1024), in_microseconds(10.0 + 512.0));  // not enough SMs for 2 parts
}

TEST(LatentDecode, JoinsTheOutputsOfSplitKeys) {
  Accelerator accelerator = made_up_latent_accelerator();
  accelerator.latent_decode->start.value = in_microseconds(2.0);
  accelerator.latent_decode->join_cost.value = 1e6;
  // 7 parts beyond the first x 10 heads x 400 values x 8 bytes, 1e6 times at 1e19 bytes/s.
  EXPECT_EQ(latent_decode_time(accelerator, round_size(1, 2048, 10)), in_microseconds(10.0 + 2.0 + 0.0224));
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 2048, 10)), in_microseconds(10.0 + 2.0));
}

TEST(LatentDecode, BlocksOf16HeadsReadKeysAgain) {
  Accelerator accelerator = made_up_latent_accelerator();
  accelerator.latent_decode->block.value = in_microseconds(3.0);
  accelerator.latent_decode->reread.value = 0.5;
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 4, 16)), in_microseconds(10.0 + 3.0));
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 4, 32)), in_microseconds(10.0 + 6.0));
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 4, 64)), in_microseconds(10.0 + 3.0));
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.latent_decode->block.value = Duration::zero();
  // 240 MB of keys, half of which the second block reads again, and 6.4 MB of queries and output, at 0.5 TB/s.
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 2000, 32)), in_microseconds(10.0 + 720.0 + 12.8));
  EXPECT_EQ(latent_decode_time(accelerator, round_size(100, 2000, 64)), in_microseconds(10.0 + 480.0 + 25.6));
}

TEST(LatentDecode, ACacheInFp8HasParametersOfItsOwn) {
  Accelerator accelerator = made_up_latent_accelerator();
  accelerator.latent_decode->start.value = in_microseconds(1.0);
  accelerator.latent_decode_fp8 = accelerator.latent_decode;
  accelerator.latent_decode_fp8->call.value = in_microseconds(7.0);
  LatentDecodeSize size = round_size(1, 4, 8);
  EXPECT_EQ(latent_decode_time(accelerator, size), in_microseconds(11.0));
  size.dtype = DType::fp8;
  EXPECT_EQ(latent_decode_time(accelerator, size), in_microseconds(8.0));
}

TEST(LatentDecode, MoreKeysTakeNoLessTime) {
  for (const char* const name : {"a100-sxm-80", "h100-sxm", "b200-sxm"}) {
    const Accelerator accelerator = shipped_machine(std::string("hardware/") + name + ".yaml").accelerator;
    ASSERT_TRUE(accelerator.latent_decode.has_value()) << name;
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
      const PhiloxWords words = philox({seed, 0, 0, 0}, 12);
      const LatentDecodeSize size{
          .batch = 1 + words[0] % 300, .seq = 1 + words[1] % 20'000, .heads = 1 << (words[2] % 8)};
      LatentDecodeSize longer = size;
      longer.seq += 1 + words[3] % 5000;
      EXPECT_LE(latent_decode_time(accelerator, size), latent_decode_time(accelerator, longer))
          << name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace commfuse
