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
  const Bytes all = cache_of(size) + Bytes{2LL * 16 * 8 * 128 * 2};
  EXPECT_EQ(decode_attention_time(h100.accelerator, size),
            h100.accelerator.attention.overhead.value + memory_bound_time(h100.accelerator, all, 132));
}

TEST(DecodeAttention, QueriesThatShareKeysCostNoMoreThanTheirOwnBytes) {
  const Machine h100 = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml");
  AttentionSize size{.batch = 16, .seq = 32768, .heads = 8, .kv_heads = 1, .head_dim = 128};
  const Duration shared = decode_attention_time(h100.accelerator, size);
  size.kv_heads = 8;
  EXPECT_GT(decode_attention_time(h100.accelerator, size), 7 * shared);
}

}  // namespace
}  // namespace commfuse
