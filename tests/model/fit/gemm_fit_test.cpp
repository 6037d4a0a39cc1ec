// SPDX-License-Identifier: Apache-2.0
#include "model/fit/gemm_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "model/config/catalogue.h"
#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;

/// Returns GEMMs from decoding to prefill with the times of a machine, each with a uniform relative error of up to
/// `noise`.
std::vector<MeasuredGemm> gemms_measured_on(const Accelerator& accelerator, double noise, int weight_copies = 0) {
  std::vector<MeasuredGemm> rows;
  for (const std::int64_t n : {512, 1024, 2560, 4096, 7168, 8192, 16384}) {
    for (const std::int64_t k : {512, 1024, 2048, 4096, 7168, 12288, 16384}) {
      for (const std::int64_t m : {1, 16, 64, 200, 512, 900, 1024, 2049, 3072, 4097, 8192, 16384, 32768}) {
        const GemmSize size{.m = m, .n = n, .k = k, .weight_copies = weight_copies};
        const PhiloxWords words = philox({static_cast<std::uint32_t>(rows.size()), 0, 0, 0}, 5);
        const double factor = std::exp(noise * (2.0 * words[0] / 4294967296.0 - 1.0));
        const Duration time = estimate_gemm(accelerator, size, accelerator.sms).time;
        rows.push_back({.size = size, .time = from_seconds(factor * to_seconds(time))});
      }
    }
  }
  return rows;
}

TEST(FitGemm, FindsTheParametersThatMadeTheRows) {
  Accelerator machine = h100_accelerator();
  GemmParameters& true_parameters = machine.matrix_units[index_of(DType::bf16)]->gemm;
  true_parameters.hbm_efficiency.value = 0.7;
  true_parameters.burst_efficiency.value = 0.72;
  true_parameters.ramp.value = from_seconds(3.5e-6);
  true_parameters.split_overhead.value = from_seconds(4e-6);
  const GemmFit fit = fit_gemm(h100_accelerator(), DType::bf16, gemms_measured_on(machine, 0.02),
                               {.machine = "mine", .source = "mine.csv"});
  EXPECT_GT(fit.held_out.rows, 60);
  EXPECT_LT(fit.held_out.median, 0.02);
  EXPECT_LT(fit.held_out.p90, 0.05);
  const auto is_inside = [](double fitted, double error, double truth) {
    return std::abs(std::log(fitted / truth)) < 3.0 * error + 0.01;
  };
  const GemmParameters& fitted = fit.parameters;
  EXPECT_TRUE(is_inside(fitted.hbm_efficiency.value, fitted.hbm_efficiency.standard_error, 0.7))
      << fitted.hbm_efficiency.value;
  EXPECT_TRUE(is_inside(fitted.burst_efficiency.value, fitted.burst_efficiency.standard_error, 0.72))
      << fitted.burst_efficiency.value;
  EXPECT_TRUE(is_inside(to_microseconds(fitted.ramp.value), fitted.ramp.standard_error, 3.5));
  EXPECT_TRUE(is_inside(to_microseconds(fitted.split_overhead.value), fitted.split_overhead.standard_error, 4.0));
}

TEST(FitGemm, StatesTheSourceOfEveryParameter) {
  const GemmFit fit = fit_gemm(h100_accelerator(), DType::bf16, gemms_measured_on(h100_accelerator(), 0.05),
                               {.machine = "mine", .source = "mine.csv"});
  EXPECT_EQ(fit.parameters.ramp.provenance, Provenance::fitted);
  EXPECT_EQ(fit.parameters.ramp.source, "mine.csv");
  EXPECT_GT(fit.parameters.ramp.standard_error, 0.0);
  const std::string yaml = gemm_yaml(fit, 8);
  EXPECT_NE(yaml.find("        hbm_efficiency: {value: 0."), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("burst_time: {value: "), std::string::npos);
  EXPECT_EQ(yaml.find("conversion_passes"), std::string::npos);
}

TEST(FitGemm, FindsTheCostOfWeightsInL2GivenTheirShare) {
  Accelerator machine = h100_accelerator();
  GemmParameters& true_parameters = machine.matrix_units[index_of(DType::bf16)]->gemm;
  true_parameters.resident_share.value = 1.0;
  true_parameters.cached_weight_cost.value = 0.3;
  const GemmFit fit = fit_gemm(machine, DType::bf16, gemms_measured_on(machine, 0.02, 5),
                               {.machine = "mine", .source = "mine.csv", .has_resident_weights = true});
  EXPECT_EQ(fit.parameters.resident_share.value, 1.0);
  EXPECT_NEAR(fit.parameters.cached_weight_cost.value, 0.3, 0.1);
  EXPECT_NE(gemm_yaml(fit, 0).find("cached_weight_cost: {value: 0."), std::string::npos);
}

TEST(FitGemm, FindsTheCostOfOutputsInL2GivenTheirShare) {
  Accelerator machine = h100_accelerator();
  GemmParameters& true_parameters = machine.matrix_units[index_of(DType::bf16)]->gemm;
  true_parameters.resident_output_share.value = 0.75;
  true_parameters.output_cost.value = 1.6;
  true_parameters.cached_output_cost.value = 0.4;
  const GemmFit fit = fit_gemm(machine, DType::bf16, gemms_measured_on(machine, 0.02),
                               {.machine = "mine", .source = "mine.csv", .has_resident_output = true});
  EXPECT_EQ(fit.parameters.resident_output_share.value, 0.75);
  EXPECT_NEAR(fit.parameters.output_cost.value, 1.6, 0.2);
  EXPECT_NEAR(fit.parameters.cached_output_cost.value, 0.4, 0.2);
  EXPECT_NE(gemm_yaml(fit, 0).find("cached_output_cost: {value: 0."), std::string::npos);
}

TEST(FitGemm, FindsTheRateOfOperandsAndKeepsItOtherwise) {
  Accelerator machine = h100_accelerator();
  machine.matrix_units[index_of(DType::bf16)]->gemm.operand_feed.value = 0.8;
  const std::vector<MeasuredGemm> rows = gemms_measured_on(machine, 0.02);
  const GemmFit fit = fit_gemm(h100_accelerator(), DType::bf16, rows, {.machine = "mine", .has_operand_feed = true});
  EXPECT_NEAR(fit.parameters.operand_feed.value, 0.8, 0.08);
  EXPECT_NE(gemm_yaml(fit, 0).find("operand_feed: {value: 0."), std::string::npos);
  EXPECT_EQ(fit_gemm(machine, DType::bf16, rows, {.machine = "mine"}).parameters.operand_feed.value, 0.8);
}

TEST(FitGemm, CanFitWithoutAPowerCeiling) {
  const GemmFit fit = fit_gemm(h100_accelerator(), DType::bf16, gemms_measured_on(h100_accelerator(), 0.05),
                               {.machine = "mine", .source = "mine.csv", .has_power_ceiling = false});
  EXPECT_EQ(fit.parameters.burst_efficiency.value, 0.0);
  EXPECT_EQ(gemm_yaml(fit, 0).find("burst"), std::string::npos);
}

}  // namespace
}  // namespace commfuse
