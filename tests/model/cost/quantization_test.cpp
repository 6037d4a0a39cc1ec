// SPDX-License-Identifier: Apache-2.0
#include "model/cost/quantization.h"

#include <gtest/gtest.h>

#include <string>

#include "model/config_error.h"
#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;
using test::in_microseconds;

/// 100 SMs, 1 TB/s, and an L2 of 6 MB, half of which keeps data between calls: exactly the 3 MB of a million elements.
Accelerator accelerator_that_quantizes() {
  Accelerator accelerator = h100_accelerator();
  accelerator.sms = 100;
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.l2_capacity = Bytes{6'000'000};
  Quantization fitted;
  fitted.call.value = in_microseconds(2.0);
  fitted.hbm_efficiency.value = 0.5;
  fitted.cached_cost.value = 0.25;
  fitted.resident_share.value = 0.5;
  fitted.scale_call.value = in_microseconds(7.0);
  fitted.scale_join.value = in_microseconds(4.0);
  fitted.scale_efficiency.value = 0.8;
  fitted.scale_cached_cost.value = 0.5;
  accelerator.quantization.emplace() = fitted;
  return accelerator;
}

TEST(Quantization, BytesThatTheL2KeepsCostLess) {
  const Accelerator accelerator = accelerator_that_quantizes();
  const auto time = [&](std::int64_t rows) { return quantization_time(accelerator, {.rows = rows, .width = 1000}); };
  EXPECT_EQ(time(1000), in_microseconds(2.0 + 1.5));     // 3 MB at 0.5 TB/s, a quarter of the time
  EXPECT_EQ(time(1050), in_microseconds(2.0 + 3.9375));  // 5% over the capacity: half stays
  EXPECT_EQ(time(1100), in_microseconds(2.0 + 6.6));     // 10% over: nothing stays
}

TEST(Quantization, TheStartAndTrafficMostlyHideEachOther) {
  Accelerator accelerator = accelerator_that_quantizes();
  accelerator.quantization->start.value = in_microseconds(1.5);
  // 1.5 x 2^(1/4)
  EXPECT_EQ(quantization_time(accelerator, {.rows = 1000, .width = 1000}), in_microseconds(2.0 + 1.7838106725));
  accelerator.quantization->start.value = in_microseconds(100.0);
  EXPECT_EQ(quantization_time(accelerator, {.rows = 1, .width = 1}), in_microseconds(102.0));
}

TEST(Quantization, BlocksTakeTimeUpToTheLargestGrid) {
  Accelerator accelerator = accelerator_that_quantizes();
  accelerator.quantization->block.value = in_microseconds(1.0);
  // 489 blocks of 2,048 elements on 100 SMs.
  EXPECT_EQ(quantization_time(accelerator, {.rows = 1000, .width = 1000}), in_microseconds(2.0 + 1.5 + 4.89));
  // 65,536 blocks, each with twice as many elements.
  EXPECT_EQ(quantization_time(accelerator, {.rows = 131072, .width = 2048}),
            in_microseconds(2.0 + 1610.612736 + 655.36));
}

TEST(Quantization, FindingTheScaleReadsTheInputAndJoinsItsBlocks) {
  const Accelerator accelerator = accelerator_that_quantizes();
  const auto time = [&](std::int64_t rows, std::int64_t width) {
    return quantization_time(accelerator, {.rows = rows, .width = width, .part = QuantizationPart::scale});
  };
  EXPECT_EQ(time(1, 1024), in_microseconds(7.0 + 4.0 / 1024 + 0.00128));
  EXPECT_EQ(time(1000, 1000), in_microseconds(7.0 + 3.81640625 + 1.25));  // 977 blocks
  EXPECT_EQ(time(2000, 1000), in_microseconds(7.0 + 4.0 + 5.0));          // 1,024 blocks; nothing stays
}

TEST(Quantization, CountsTheBytesOfBothParts) {
  QuantizationSize size{.rows = 1000, .width = 1000};
  EXPECT_EQ(quantization_traffic(size), Bytes{3'000'000});
  size.part = QuantizationPart::scale;
  EXPECT_EQ(quantization_traffic(size), Bytes{2'000'000});
  size.rows = std::int64_t{1} << 61;
  EXPECT_EQ(quantization_traffic(size), Bytes{std::int64_t{1} << 62});
  EXPECT_THROW(quantization_time(accelerator_that_quantizes(), size), ConfigError);
}

TEST(Quantization, OnlyFp8OfAMeasuredAcceleratorHasParameters) {
  Accelerator accelerator = accelerator_that_quantizes();
  EXPECT_NE(quantization_of(accelerator, DType::fp8), nullptr);
  EXPECT_EQ(quantization_of(accelerator, DType::bf16), nullptr);
  accelerator.quantization.reset();
  EXPECT_EQ(quantization_of(accelerator, DType::fp8), nullptr);
}

TEST(Quantization, MoreElementsTakeNoLessTime) {
  for (const char* const name : {"h100-sxm", "b200-sxm", "b300-sxm", "l40s-pcie", "pcie-rtx-pro-6000"}) {
    const Accelerator accelerator = test::shipped_machine(std::string("hardware/") + name + ".yaml").accelerator;
    ASSERT_TRUE(accelerator.quantization.has_value()) << name;
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
      const PhiloxWords words = philox({seed, 0, 0, 0}, 17);
      QuantizationSize size{.rows = 1 + words[0] % 40'000,
                            .width = 32 * (1 + words[1] % 512),
                            .part = words[2] % 2 == 0 ? QuantizationPart::conversion : QuantizationPart::scale};
      const Duration time = quantization_time(accelerator, size);
      size.rows += 1 + words[3] % 5000;
      EXPECT_LE(time, quantization_time(accelerator, size)) << name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace commfuse
