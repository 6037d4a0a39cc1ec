// SPDX-License-Identifier: Apache-2.0
#include "model/cost/decode_attention.h"

#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/cost/memory_bound.h"

namespace commfuse {
namespace {

TEST(DecodeAttention, ReadsEveryKeyAndValueOnce) {
  const Machine h100 = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml");
  const AttentionSize size{.batch = 16, .seq = 4096, .heads = 8, .kv_heads = 2, .head_dim = 128};
  EXPECT_EQ(cache_of(size), Bytes{2LL * 16 * 4096 * 2 * 128 * 2});
  const Bytes read_bytes = cache_of(size) + Bytes{2LL * 16 * 8 * 128 * 2};
  EXPECT_EQ(decode_attention_time(h100.accelerator, size),
            h100.accelerator.attention.overhead.value + memory_bound_time(h100.accelerator, read_bytes, 132));
}

TEST(DecodeAttention, QueriesThatShareKeysCostNoMoreThanTheirOwnBytes) {
  const Machine h100 = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml");
  AttentionSize size{.batch = 16, .seq = 32768, .heads = 8, .kv_heads = 1, .head_dim = 128};
  const Duration shared = decode_attention_time(h100.accelerator, size);
  size.kv_heads = 8;
  EXPECT_GT(decode_attention_time(h100.accelerator, size), 7 * shared);
}

// DeepSeek-V3 has 128 heads and narrow keys of 512 + 64 elements, of which the first 512 are also the values.
TEST(DecodeAttention, OverNarrowKeysReadsThemOnceForAllHeadsOrIsBoundByGemms) {
  const Accelerator h100 = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml").accelerator;
  LatentDecodeSize size{.batch = 64, .seq = 4096, .heads = 8};
  const Bytes read_bytes{64LL * (4096 * 576 + 8 * (576 + 512)) * 2};
  EXPECT_EQ(latent_decode_time(h100, size),
            h100.attention.overhead.value + memory_bound_time(h100, read_bytes, h100.sms));
  size.heads = 256;  // two tokens per sequence on 128 heads
  const double gemm_flops = 2.0 * 64 * 4096 * 256 * (576 + 512);
  const double rate = h100.dense_peak(DType::bf16).value * h100.attention.loop_efficiency.value;
  EXPECT_EQ(latent_decode_time(h100, size), h100.attention.overhead.value + from_seconds(gemm_flops / rate));
}

TEST(DecodeAttention, OverWideKeysReadsTheKeysOfEveryHead) {
  const Accelerator h100 = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml").accelerator;
  const LatentDecodeSize wide{
      .batch = 64, .seq = 4096, .heads = 16, .key_width = 192, .value_width = 128, .shared = false};
  const Bytes read_bytes{64LL * (4096 + 1) * 16 * (192 + 128) * 2};
  EXPECT_EQ(latent_decode_time(h100, wide),
            h100.attention.overhead.value + memory_bound_time(h100, read_bytes, h100.sms));
}

}  // namespace
}  // namespace commfuse
