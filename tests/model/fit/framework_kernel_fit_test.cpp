// SPDX-License-Identifier: Apache-2.0
#include "model/fit/framework_kernel_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;

std::vector<MeasuredFrameworkKernel> kernels_measured_on(const Accelerator& accelerator, double noise) {
  const std::vector<std::pair<FrameworkKernel, std::int64_t>> kernels{{FrameworkKernel::sum, 3},
                                                                      {FrameworkKernel::norm, 2},
                                                                      {FrameworkKernel::activation, 3},
                                                                      {FrameworkKernel::rotation, 2}};
  const std::vector<std::string> ops{"add", "input_layernorm", "mlp_act", "attn_rope"};
  std::vector<MeasuredFrameworkKernel> rows;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    for (const std::int64_t width : {1024, 2048, 4096, 5120, 8192, 14336}) {
      for (std::int64_t m = 16; m <= 4096; m += 120) {
        const FrameworkKernelSize size{
            .kernel = kernels[i].first, .rows = m, .width = width, .traffic = Bytes{kernels[i].second * m * width * 2}};
        const PhiloxWords words = philox({static_cast<std::uint32_t>(rows.size()), 0, 0, 0}, 9);
        const double factor = std::exp(noise * (2.0 * words[0] / 4294967296.0 - 1.0));
        rows.push_back({ops[i], size, from_seconds(factor * to_seconds(framework_kernel_time(accelerator, size)))});
      }
    }
  }
  return rows;
}

TEST(FitFrameworkKernels, FindsTheParametersThatMadeTheRows) {
  Accelerator machine = h100_accelerator();
  FrameworkKernels& true_kernels = *machine.framework_kernels;
  true_kernels.floor.value = from_seconds(2e-6);
  true_kernels.norm_efficiency.value = 0.35;
  true_kernels.activation_step.value = from_seconds(0.8e-6);
  const FrameworkKernelFit fit =
      fit_framework_kernels(h100_accelerator(), kernels_measured_on(machine, 0.02), "mine", "mine.csv");
  EXPECT_GT(fit.held_out.rows, 30);
  EXPECT_LT(fit.held_out.median, 0.02);
  const FrameworkKernels& kernels = *fit.accelerator.framework_kernels;
  EXPECT_NEAR(to_microseconds(kernels.floor.value), 2.0, 0.1);
  EXPECT_NEAR(kernels.norm_efficiency.value, 0.35, 0.01);
  EXPECT_NEAR(to_microseconds(kernels.activation_step.value), 0.8, 0.04);
  EXPECT_EQ(kernels.floor.source, "mine.csv");
  EXPECT_NE(framework_kernels_yaml(fit, 4).find("    norm_step: {value: "), std::string::npos);
}

TEST(FitFrameworkKernels, AnUnmeasuredKernelKeepsTheBasesParameters) {
  Accelerator machine = h100_accelerator();
  machine.framework_kernels->norm_efficiency.value = 0.35;
  std::vector<MeasuredFrameworkKernel> rows = kernels_measured_on(machine, 0.02);
  std::erase_if(rows, [](const auto& row) { return row.size.kernel == FrameworkKernel::rotation; });
  const FrameworkKernelFit fit = fit_framework_kernels(h100_accelerator(), rows, "mine", "mine.csv");
  EXPECT_TRUE(fit.has_few);
  EXPECT_NEAR(fit.accelerator.framework_kernels->norm_efficiency.value, 0.35, 0.02);
  EXPECT_EQ(fit.accelerator.framework_kernels->rotation_efficiency.value,
            h100_accelerator().framework_kernels->rotation_efficiency.value);
}

}  // namespace
}  // namespace commfuse
