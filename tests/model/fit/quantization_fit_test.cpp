// SPDX-License-Identifier: Apache-2.0
#include "model/fit/quantization_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;
using test::in_microseconds;

std::vector<MeasuredQuantization> quantization_measured_on(const Accelerator& accelerator) {
  std::vector<MeasuredQuantization> rows;
  for (const std::int64_t width : {128, 256, 512, 768, 1024, 2048, 3072, 4096, 5120, 7168, 8192, 16384}) {
    for (const std::int64_t tokens : {1, 4, 16, 64, 192, 256, 512, 1024, 1536, 2048, 4096, 8192, 32768}) {
      for (const QuantizationPart part : {QuantizationPart::conversion, QuantizationPart::scale}) {
        const QuantizationSize size{.rows = tokens, .width = width, .part = part};
        const PhiloxWords words = philox({static_cast<std::uint32_t>(rows.size()), 0, 0, 0}, 9);
        const double factor = std::exp(0.02 * (2.0 * words[0] / 4294967296.0 - 1.0));
        rows.push_back({size, from_seconds(factor * to_seconds(quantization_time(accelerator, size)))});
      }
    }
  }
  return rows;
}

TEST(FitQuantization, FindsTheParametersThatMadeTheRows) {
  Accelerator machine = h100_accelerator();
  Quantization& made = *machine.quantization;
  made.call.value = in_microseconds(2.5);
  made.hbm_efficiency.value = 0.7;
  made.cached_cost.value = 0.4;
  made.scale_call.value = in_microseconds(11.0);
  made.scale_join.value = in_microseconds(3.0);
  made.scale_efficiency.value = 0.5;
  const std::vector<MeasuredQuantization> rows = quantization_measured_on(machine);
  Accelerator base = h100_accelerator();
  base.quantization.reset();
  ASSERT_TRUE(can_fit_quantization(base, rows, "mine"));
  const QuantizationFit fit = fit_quantization(base, rows, "mine", "mine.csv");
  EXPECT_GT(fit.held_out.rows, 20);
  EXPECT_LT(fit.held_out.median, 0.02);
  EXPECT_LT(fit.held_out.p90, 0.03);
  const Quantization& fitted = *fit.accelerator.quantization;
  EXPECT_NEAR(to_microseconds(fitted.call.value + fitted.start.value),
              to_microseconds(made.call.value + made.start.value), 0.1);
  EXPECT_NEAR(fitted.hbm_efficiency.value, 0.7, 0.03);
  EXPECT_NEAR(fitted.cached_cost.value, 0.4, 0.03);
  EXPECT_NEAR(to_microseconds(fitted.scale_call.value), 11.0, 0.2);
  EXPECT_NEAR(to_microseconds(fitted.scale_join.value), 3.0, 0.3);
  EXPECT_NEAR(fitted.scale_efficiency.value, 0.5, 0.02);
  EXPECT_EQ(fitted.call.source, "mine.csv");
  EXPECT_NE(quantization_yaml(fit, DType::fp8, 4).find("    scale_call: {value: "), std::string::npos);
}

TEST(FitQuantization, BothPartsAreNeededWithoutABase) {
  const Accelerator h100 = h100_accelerator();
  std::vector<MeasuredQuantization> rows = quantization_measured_on(h100);
  std::erase_if(rows, [](const MeasuredQuantization& row) { return row.size.part == QuantizationPart::scale; });
  Accelerator base = h100;
  base.quantization.reset();
  EXPECT_FALSE(can_fit_quantization(base, rows, "mine"));
  ASSERT_TRUE(can_fit_quantization(h100, rows, "mine"));
  const QuantizationFit fit = fit_quantization(h100, rows, "mine", "mine.csv");
  EXPECT_FALSE(fit.has_few);
  EXPECT_EQ(fit.accelerator.quantization->scale_call.value, h100.quantization->scale_call.value);
  EXPECT_EQ(quantization_yaml(fit, DType::fp8, 4).find("scale_"), std::string::npos);
}

TEST(FitQuantization, FewRowsMoveTheParametersOfTheBase) {
  Accelerator machine = h100_accelerator();
  machine.quantization->hbm_efficiency.value = 0.5;
  const QuantizationSize size{.rows = 32768, .width = 16384};
  const std::vector<MeasuredQuantization> rows{{size, quantization_time(machine, size)}};
  const Accelerator base = h100_accelerator();
  const QuantizationFit fit = fit_quantization(base, rows, "mine", "mine.csv");
  EXPECT_TRUE(fit.has_few);
  EXPECT_LT(fit.accelerator.quantization->hbm_efficiency.value, base.quantization->hbm_efficiency.value);
  EXPECT_EQ(fit.accelerator.quantization->scale_join.value, base.quantization->scale_join.value);
}

}  // namespace
}  // namespace commfuse
