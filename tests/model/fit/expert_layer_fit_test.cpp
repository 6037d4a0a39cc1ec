// SPDX-License-Identifier: Apache-2.0
#include "model/fit/expert_layer_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;
using test::in_microseconds;

std::vector<MeasuredExpertLayer> experts_measured_on(const Accelerator& accelerator, DType dtype,
                                                     const std::vector<double>& exponents) {
  std::vector<MeasuredExpertLayer> rows;
  for (const std::int64_t hidden : {2048, 6144}) {
    for (const std::int64_t ffn : {768, 2048}) {
      for (const std::int64_t experts : {16, 128, 256}) {
        for (const std::int64_t tp : {1, 8}) {
          for (const std::int64_t ep : {1, 4, 16}) {
            for (const double exponent : exponents) {
              for (const std::int64_t tokens : {1, 16, 128, 1024, 4096, 16384}) {
                const ExpertLayerSize size{.tokens = tokens,
                                           .hidden = hidden,
                                           .ffn = ffn,
                                           .active = 8,
                                           .experts = experts,
                                           .tp = tp,
                                           .ep = ep,
                                           .exponent = exponent,
                                           .dtype = dtype};
                const PhiloxWords words = philox({static_cast<std::uint32_t>(rows.size()), 0, 0, 0}, 9);
                const double factor = std::exp(0.02 * (2.0 * words[0] / 4294967296.0 - 1.0));
                rows.push_back({size, from_seconds(factor * to_seconds(expert_layer_time(accelerator, size)))});
              }
            }
          }
        }
      }
    }
  }
  return rows;
}

TEST(FitExpertLayer, FindsTheParametersThatMadeTheRows) {
  Accelerator machine = h100_accelerator();
  ExpertLayer& layer = machine.experts.value();
  layer.call.value = in_microseconds(15.0);
  layer.hbm_efficiency.value = 0.7;
  layer.row_traffic.value = 2.0;
  layer.matrix_share.value = 0.6;
  layer.uneven_time.value = 1.3;
  const std::vector<MeasuredExpertLayer> rows = experts_measured_on(machine, DType::bf16, {0.0, 1.2});
  Accelerator base = h100_accelerator();
  base.experts.reset();
  ASSERT_TRUE(can_fit_expert_layer(base, rows, "mine"));
  const ExpertLayerFit fit = fit_expert_layer(base, rows, "mine", "mine.csv");
  EXPECT_GT(fit.held_out.rows, 50);
  EXPECT_LT(fit.held_out.median, 0.02);
  EXPECT_LT(fit.held_out.p90, 0.05);
  const ExpertLayer& fitted = fit.accelerator.experts.value();
  EXPECT_NEAR(to_microseconds(fitted.call.value), 15.0, 0.5);
  EXPECT_NEAR(fitted.hbm_efficiency.value, 0.7, 0.02);
  EXPECT_NEAR(fitted.row_traffic.value, 2.0, 0.1);
  EXPECT_NEAR(fitted.matrix_share.value, 0.6, 0.03);
  EXPECT_NEAR(fitted.uneven_time.value, 1.3, 0.05);
  EXPECT_EQ(fitted.call.source, "mine.csv");
  EXPECT_NE(expert_layer_yaml(fit, DType::bf16, 4).find("    uneven_time: {value: "), std::string::npos);
}

TEST(FitExpertLayer, OneKindOfLoadsLeavesTheCostOfUnevenLoads) {
  Accelerator machine = h100_accelerator();
  machine.experts_fp8->call.value = in_microseconds(40.0);
  machine.experts_fp8->uneven_time.value = 1.25;
  const Accelerator base = machine;
  const std::vector<MeasuredExpertLayer> rows = experts_measured_on(machine, DType::fp8, {1.01, 1.2});
  const ExpertLayerFit fit = fit_expert_layer(base, rows, "mine", "mine.csv");
  EXPECT_NEAR(to_microseconds(fit.accelerator.experts_fp8->call.value), 40.0, 1.0);
  EXPECT_EQ(fit.accelerator.experts_fp8->uneven_time.value, 1.25);
  EXPECT_EQ(expert_layer_yaml(fit, DType::fp8, 4).find("uneven_time"), std::string::npos);
  EXPECT_EQ(fit.accelerator.experts->call.value, base.experts->call.value);
}

TEST(FitExpertLayer, FewRowsMoveTheParametersOfTheBase) {
  Accelerator machine = h100_accelerator();
  machine.experts->hbm_efficiency.value = 0.6;
  const ExpertLayerSize size{.tokens = 256, .hidden = 4096, .ffn = 1536, .active = 8, .experts = 128};
  const std::vector<MeasuredExpertLayer> rows{{size, expert_layer_time(machine, size)}};
  Accelerator base = h100_accelerator();
  const ExpertLayerFit fit = fit_expert_layer(base, rows, "mine", "mine.csv");
  EXPECT_TRUE(fit.has_few);
  EXPECT_LT(fit.accelerator.experts->hbm_efficiency.value, base.experts->hbm_efficiency.value);
  EXPECT_EQ(fit.accelerator.experts->choices.value, base.experts->choices.value);
  base.experts.reset();
  EXPECT_FALSE(can_fit_expert_layer(base, rows, "mine"));
}

TEST(FitExpertLayer, ADtypeWithoutAPeakCannotBeFitted) {
  const Accelerator h100 = h100_accelerator();
  const std::vector<MeasuredExpertLayer> rows = experts_measured_on(h100, DType::fp8, {0.0});
  Accelerator base = h100;
  base.matrix_units[index_of(DType::fp8)].reset();
  EXPECT_TRUE(can_fit_expert_layer(h100, rows, "mine"));
  EXPECT_FALSE(can_fit_expert_layer(base, rows, "mine"));
}

}  // namespace
}  // namespace commfuse
