// SPDX-License-Identifier: Apache-2.0
#include "model/fit/attention_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/config/catalogue.h"
#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;

std::vector<MeasuredAttention> attention_measured_on(const Accelerator& accelerator, double noise) {
  std::vector<MeasuredAttention> rows;
  for (const std::int64_t heads : {4, 8, 16, 24, 32, 40, 64}) {
    for (const std::int64_t kv_heads : {1, 4}) {
      for (const std::int64_t head_dim : {64, 128}) {
        for (const std::int64_t seq : {64, 512, 1024, 3072, 8192, 16384}) {
          for (const std::int64_t batch : {1, 4}) {
            const AttentionSize size{
                .batch = batch, .seq = seq, .heads = heads, .kv_heads = kv_heads, .head_dim = head_dim};
            const PhiloxWords words = philox({static_cast<std::uint32_t>(rows.size()), 0, 0, 0}, 9);
            const double factor = std::exp(noise * (2.0 * words[0] / 4294967296.0 - 1.0));
            const double time = to_seconds(attention_time(accelerator, size, accelerator.sms));
            rows.push_back({.size = size, .time = from_seconds(factor * time)});
          }
        }
      }
    }
  }
  return rows;
}

TEST(FitAttention, FindsTheParametersThatMadeTheRows) {
  Accelerator machine = h100_accelerator();
  machine.attention.loop_efficiency.value = 0.6;
  machine.attention.exponentials.value = FlopsPerSecond{8e12};
  machine.attention.overhead.value = from_seconds(5e-6);
  machine.attention.masked_width.value = 100.0;
  machine.attention.narrow_overhead.value = 1.3;
  const AttentionFit fit = fit_attention(h100_accelerator(), attention_measured_on(machine, 0.02), "mine", "mine.csv");
  EXPECT_GT(fit.held_out.rows, 30);
  EXPECT_LT(fit.held_out.median, 0.02);
  EXPECT_LT(fit.held_out.p90, 0.04);
  EXPECT_NEAR(fit.accelerator.attention.loop_efficiency.value, 0.6,
              3.0 * 0.6 * fit.accelerator.attention.loop_efficiency.standard_error);
  EXPECT_NEAR(to_microseconds(fit.accelerator.attention.overhead.value), 5.0, 0.2);
  EXPECT_NEAR(fit.accelerator.attention.narrow_overhead.value, 1.3, 0.05);
  EXPECT_EQ(fit.accelerator.attention.overhead.source, "mine.csv");
  EXPECT_NE(attention_yaml(fit, 4).find("    exponentials: {value: "), std::string::npos);
  EXPECT_EQ(attention_yaml(fit, 4).find("split_cost"), std::string::npos);
}

TEST(FitAttention, FindsTheCostOfSplitKeysIfTheBaseSplitsKeys) {
  Accelerator machine = h100_accelerator();
  machine.attention.split_cost.value = 1.6;
  Accelerator base = h100_accelerator();
  base.attention.split_cost.value = 1.2;
  const AttentionFit fit = fit_attention(base, attention_measured_on(machine, 0.02), "mine", "mine.csv");
  EXPECT_LT(fit.held_out.median, 0.02);
  EXPECT_NEAR(fit.accelerator.attention.split_cost.value, 1.6, 0.1);
  EXPECT_NE(attention_yaml(fit, 4).find("    split_cost: {value: 1."), std::string::npos);
}

}  // namespace
}  // namespace commfuse
