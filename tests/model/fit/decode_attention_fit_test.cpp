// SPDX-License-Identifier: Apache-2.0
#include "model/fit/decode_attention_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/cost/decode_attention.h"
#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;
using test::in_microseconds;

std::vector<MeasuredAttention> decoding_measured_on(const Accelerator& accelerator, DType cache) {
  std::vector<MeasuredAttention> rows;
  for (const std::int64_t kv_heads : {1, 2, 4, 8, 16}) {
    for (const std::int64_t shared : {1, 2, 4, 8, 16, 64}) {
      for (const std::int64_t head_dim : {64, 128}) {
        for (const std::int64_t seq : {2, 64, 512, 2048, 16384}) {
          for (const std::int64_t batch : {1, 8, 64, 512}) {
            const AttentionSize size{.batch = batch,
                                     .seq = seq,
                                     .heads = kv_heads * shared,
                                     .kv_heads = kv_heads,
                                     .head_dim = head_dim,
                                     .dtype = cache};
            const PhiloxWords words = philox({static_cast<std::uint32_t>(rows.size()), 0, 0, 0}, 9);
            const double factor = std::exp(0.02 * (2.0 * words[0] / 4294967296.0 - 1.0));
            rows.push_back({size, from_seconds(factor * to_seconds(decode_attention_time(accelerator, size)))});
          }
        }
      }
    }
  }
  return rows;
}

TEST(FitDecodeAttention, FindsTheParametersThatMadeTheRows) {
  Accelerator machine = h100_accelerator();
  DecodeAttention& decoding = machine.decode_attention.value();
  decoding.call.value = in_microseconds(4.0);
  decoding.packed_block.value = in_microseconds(3.0);
  decoding.hbm_efficiency.value = 0.8;
  decoding.most_parts.value = 20.0;
  const std::vector<MeasuredAttention> rows = decoding_measured_on(machine, DType::bf16);
  Accelerator base = h100_accelerator();
  base.decode_attention.reset();
  ASSERT_TRUE(can_fit_decode_attention(base, rows, "mine"));
  const AttentionFit fit = fit_decode_attention(base, rows, "mine", "mine.csv");
  EXPECT_GT(fit.held_out.rows, 100);
  EXPECT_LT(fit.held_out.median, 0.02);
  EXPECT_LT(fit.held_out.p90, 0.05);
  const DecodeAttention& fitted = fit.accelerator.decode_attention.value();
  EXPECT_NEAR(to_microseconds(fitted.call.value), 4.0, 0.2);
  EXPECT_NEAR(to_microseconds(fitted.packed_block.value), 3.0, 0.1);
  EXPECT_NEAR(fitted.hbm_efficiency.value, 0.8, 0.02);
  EXPECT_EQ(fitted.call.source, "mine.csv");
  EXPECT_NE(decode_attention_yaml(fit, DType::bf16, 4).find("    vector_rate: {value: "), std::string::npos);
}

TEST(FitDecodeAttention, FitsACacheInFp8ToItsOwnRows) {
  Accelerator machine = h100_accelerator();
  machine.decode_attention_fp8->call.value = in_microseconds(9.0);
  const std::vector<MeasuredAttention> rows = decoding_measured_on(machine, DType::fp8);
  const Accelerator base = h100_accelerator();
  const AttentionFit fit = fit_decode_attention(base, rows, "mine", "mine.csv");
  EXPECT_NEAR(to_microseconds(fit.accelerator.decode_attention_fp8->call.value), 9.0, 0.5);
  EXPECT_EQ(fit.accelerator.decode_attention->call.value, base.decode_attention->call.value);
}

TEST(FitDecodeAttention, HasNoUnpackedKernelIfTheBaseHasNone) {
  Accelerator machine = h100_accelerator();
  machine.decode_attention->unpacked_block.value = Duration::zero();
  const AttentionFit fit =
      fit_decode_attention(machine, decoding_measured_on(machine, DType::bf16), "mine", "mine.csv");
  EXPECT_EQ(decode_attention_yaml(fit, DType::bf16, 4).find("unpacked"), std::string::npos);
  EXPECT_LT(fit.held_out.median, 0.02);
}

TEST(FitDecodeAttention, FewRowsMoveTheParametersOfTheBase) {
  Accelerator machine = h100_accelerator();
  machine.decode_attention->hbm_efficiency.value = 0.7;
  const AttentionSize size{.batch = 64, .seq = 16384, .heads = 32, .kv_heads = 8};
  const std::vector<MeasuredAttention> rows{{size, decode_attention_time(machine, size)}};
  Accelerator base = h100_accelerator();
  const AttentionFit fit = fit_decode_attention(base, rows, "mine", "mine.csv");
  EXPECT_TRUE(fit.has_few);
  EXPECT_LT(fit.accelerator.decode_attention->hbm_efficiency.value, 0.8);
  EXPECT_NEAR(to_seconds(decode_attention_time(fit.accelerator, size)) / to_seconds(rows[0].time), 1.0, 0.1);
  EXPECT_EQ(fit.accelerator.decode_attention->packed_block.value, base.decode_attention->packed_block.value);
  base.decode_attention.reset();
  EXPECT_FALSE(can_fit_decode_attention(base, rows, "mine"));
}

}  // namespace
}  // namespace commfuse
