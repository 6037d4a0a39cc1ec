// SPDX-License-Identifier: Apache-2.0
#include "model/cost/decode_attention.h"

#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/cost/memory_bound.h"
#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;
using test::in_microseconds;

Accelerator h100_without_fit() {
  Accelerator h100 = h100_accelerator();
  h100.decode_attention.reset();
  h100.decode_attention_fp8.reset();
  return h100;
}

/// 100 SMs, and memory so fast that traffic takes no time unless a test makes it slow.
Accelerator accelerator_that_decodes() {
  Accelerator accelerator = h100_accelerator();
  accelerator.sms = 100;
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e18};
  accelerator.sm_bandwidth.value = BytesPerSecond{1e18};
  accelerator.l2_capacity = Bytes{1'000'000'000};
  DecodeAttention decoding;
  decoding.call.value = in_microseconds(10.0);
  decoding.hbm_efficiency.value = 0.5;
  decoding.most_parts.value = 8.0;
  decoding.narrow_time.value = 0.75;
  accelerator.decode_attention = decoding;
  return accelerator;
}

TEST(DecodeAttention, WithoutAFitReadsEveryKeyAndValueOnce) {
  const Accelerator h100 = h100_without_fit();
  const AttentionSize size{.batch = 16, .seq = 4096, .heads = 8, .kv_heads = 2, .head_dim = 128};
  EXPECT_EQ(cache_of(size), Bytes{2LL * 16 * 4096 * 2 * 128 * 2});
  const Bytes read_bytes = cache_of(size) + Bytes{2LL * 16 * 8 * 128 * 2};
  EXPECT_EQ(decode_attention_time(h100, size),
            h100.attention.overhead.value + memory_bound_time(h100, read_bytes, 132));
}

TEST(DecodeAttention, QueriesThatShareKeysCostNoMoreThanTheirOwnBytes) {
  const Accelerator h100 = h100_without_fit();
  AttentionSize size{.batch = 16, .seq = 32768, .heads = 8, .kv_heads = 1, .head_dim = 128};
  const Duration shared = decode_attention_time(h100, size);
  size.kv_heads = 8;
  EXPECT_GT(decode_attention_time(h100, size), 7 * shared);
}

TEST(DecodeAttention, ReadsTheCacheAtItsShareOfTheBandwidth) {
  Accelerator accelerator = accelerator_that_decodes();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  const AttentionSize size{.batch = 100, .seq = 9999, .heads = 10, .kv_heads = 10, .head_dim = 125};
  // 2 x 100 x 10 x 125 x 2 bytes = 500 kB per key, and as much for queries and output: 5 GB at 0.5 TB/s.
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0 + 10'000.0));
  accelerator.decode_attention->memory_ramp.value = in_microseconds(4.0);
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0 + 10'000.0 + 4.0));
  EXPECT_EQ(decode_limit_of(accelerator, size), Limit::bandwidth);
  const AttentionSize fewer{.batch = 100, .seq = 999, .heads = 10, .kv_heads = 10, .head_dim = 125};
  EXPECT_EQ(decode_attention_time(accelerator, fewer), in_microseconds(10.0 + 1'000.0 + 2.0));  // half of the L2
}

TEST(DecodeAttention, FewBlocksLoadNoFasterThanTheirSms) {
  Accelerator accelerator = accelerator_that_decodes();
  accelerator.sm_bandwidth.value = BytesPerSecond{1e9};
  // One head of 2,047 keys in 2047 / 256 blocks of 1 GB/s each; 2 x 2,048 x 128 x 2 bytes are moved.
  const AttentionSize size{.batch = 1, .seq = 2047, .heads = 1, .kv_heads = 1, .head_dim = 128};
  EXPECT_EQ(decode_attention_time(accelerator, size),
            in_microseconds(10.0) + from_seconds(1'048'576.0 / (1e9 * 2047.0 / 256.0)));
}

TEST(DecodeAttention, PackedBlocksShareTheSms) {
  Accelerator accelerator = accelerator_that_decodes();
  accelerator.decode_attention->packed_block.value = in_microseconds(3.0);
  accelerator.decode_attention->packed_head.value = in_microseconds(0.25);
  AttentionSize size{.batch = 200, .seq = 4, .heads = 8, .kv_heads = 2, .head_dim = 128};
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0 + 400.0 * (3.0 + 4.0 * 0.25) / 100.0));
  EXPECT_EQ(decode_limit_of(accelerator, size), Limit::compute);
  size.head_dim = 64;
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0 + 0.75 * 16.0));
}

TEST(DecodeAttention, SplitsKeysUntilEverySmHasABlock) {
  Accelerator accelerator = accelerator_that_decodes();
  accelerator.decode_attention->packed_keys.value = in_microseconds(8.0);
  const auto time = [&](std::int64_t batch, std::int64_t keys) {
    const AttentionSize size{.batch = batch, .seq = keys, .heads = 4, .kv_heads = 1, .head_dim = 128};
    EXPECT_EQ(decode_limit_of(accelerator, size), keys > 256 ? Limit::few_tiles : Limit::latency);
    return decode_attention_time(accelerator, size);
  };
  EXPECT_EQ(time(1, 64), in_microseconds(10.0 + 4.0));
  EXPECT_EQ(time(1, 8 * 1024), in_microseconds(10.0 + 16.0));    // 8 parts, the most, of 1024 keys
  EXPECT_EQ(time(25, 4 * 1024), in_microseconds(10.0 + 16.0));   // 4 parts fill 100 SMs
  EXPECT_EQ(time(60, 16 * 1024), in_microseconds(10.0 + 64.0));  // not enough SMs for 2 parts
}

TEST(DecodeAttention, ALoneHeadHasTheUnpackedKernel) {
  Accelerator accelerator = accelerator_that_decodes();
  accelerator.decode_attention->packed_block.value = in_microseconds(3.0);
  accelerator.decode_attention->unpacked_block.value = in_microseconds(2.0);
  AttentionSize size{.batch = 1000, .seq = 4, .heads = 1, .kv_heads = 1, .head_dim = 128};
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0 + 20.0));
  size.heads = 8;  // a packed block of 8 heads, or 8 blocks
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0 + 30.0));
  size.heads = 64;  // more than a packed block takes
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0 + 64 * 20.0));
}

TEST(DecodeAttention, TheUnpackedKernelMultipliesInVectorUnits) {
  Accelerator accelerator = accelerator_that_decodes();
  accelerator.decode_attention->unpacked_block.value = from_seconds(1e-12);
  accelerator.decode_attention->vector_rate.value = FlopsPerSecond{4e12};
  const AttentionSize size{.batch = 100, .seq = 1000, .heads = 40, .kv_heads = 1, .head_dim = 125};
  // 4 x 100 x 40 x 1000 x 125 FLOP = 2 GFLOP.
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0 + 500.0));
}

TEST(DecodeAttention, ACacheInFp8HasParametersOfItsOwn) {
  Accelerator accelerator = accelerator_that_decodes();
  accelerator.decode_attention_fp8 = accelerator.decode_attention;
  accelerator.decode_attention_fp8->call.value = in_microseconds(7.0);
  AttentionSize size{.seq = 4, .heads = 8, .head_dim = 128, .dtype = DType::fp8};
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(7.0));
  size.dtype = DType::fp16;
  EXPECT_EQ(decode_attention_time(accelerator, size), in_microseconds(10.0));
}

TEST(DecodeAttention, MoreKeysOrSequencesTakeNoLessTime) {
  for (const char* const name : {"a100-sxm-80", "h100-sxm", "b200-sxm"}) {
    const Accelerator accelerator =
        load_machine(std::string(COMMFUSE_SOURCE_DIR "/configs/hardware/") + name + ".yaml").accelerator;
    ASSERT_TRUE(accelerator.decode_attention.has_value()) << name;
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
      const PhiloxWords words = philox({seed, 0, 0, 0}, 11);
      const AttentionSize size{.batch = 1 + words[0] % 300,
                               .seq = 1 + words[1] % 20'000,
                               .heads = 8 << (words[2] % 4),
                               .kv_heads = 1 << (words[2] / 4 % 4),
                               .head_dim = seed % 2 == 0 ? 64 : 128};
      AttentionSize longer = size;
      longer.seq += 1 + words[3] % 5000;
      AttentionSize wider = size;
      wider.batch += 1 + words[3] % 50;
      const Duration time = decode_attention_time(accelerator, size);
      EXPECT_LE(time, decode_attention_time(accelerator, longer)) << name << ", seed " << seed;
      EXPECT_LE(time, decode_attention_time(accelerator, wider)) << name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace commfuse
