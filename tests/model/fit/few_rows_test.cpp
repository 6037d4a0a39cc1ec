// SPDX-License-Identifier: Apache-2.0
#include "model/fit/few_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/fit/attention_fit.h"
#include "model/fit/framework_kernel_fit.h"
#include "model/fit/gemm_fit.h"
#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;

/// Returns a number that is uniform in [0, 1), determined by seed and index.
double uniform_number(std::uint32_t seed, std::uint32_t index) {
  return philox({seed, index, 0, 0}, 39)[0] / 4294967296.0;
}

GemmParameters& gemm_of(Accelerator& accelerator) { return accelerator.matrix_units[index_of(DType::bf16)]->gemm; }

double predicted(const Accelerator& accelerator, const MeasuredGemm& row) {
  return to_seconds(estimate_gemm(accelerator, row.size, accelerator.sms).time);
}
double predicted(const Accelerator& accelerator, const MeasuredAttention& row) {
  return to_seconds(attention_time(accelerator, row.size, accelerator.sms));
}
double predicted(const Accelerator& accelerator, const MeasuredFrameworkKernel& row) {
  return to_seconds(framework_kernel_time(accelerator, row.size));
}

Accelerator fitted(const Accelerator& base, const std::vector<MeasuredGemm>& rows) {
  Accelerator accelerator = base;
  gemm_of(accelerator) = fit_gemm(base, DType::bf16, rows, {.machine = "mine", .source = "mine.csv"}).parameters;
  return accelerator;
}
Accelerator fitted(const Accelerator& base, const std::vector<MeasuredAttention>& rows) {
  Accelerator accelerator = base;
  accelerator.attention = fit_attention(base, rows, "mine", "mine.csv").accelerator.attention;
  return accelerator;
}
Accelerator fitted(const Accelerator& base, const std::vector<MeasuredFrameworkKernel>& rows) {
  return fit_framework_kernels(base, rows, "mine", "mine.csv").accelerator;
}

MeasuredGemm measured_gemm(const Accelerator& machine, std::int64_t m, std::int64_t n, std::int64_t k) {
  MeasuredGemm row{.size = {.m = m, .n = n, .k = k}};
  row.time = from_seconds(predicted(machine, row));
  return row;
}

TEST(FewRows, OneGemmMovesAnEfficiencyAndNothingElse) {
  Accelerator machine = h100_accelerator();
  gemm_of(machine).burst_efficiency.value *= 0.7;
  const std::vector<MeasuredGemm> rows{measured_gemm(machine, 8192, 8192, 8192)};
  const GemmFit fit = fit_gemm(h100_accelerator(), DType::bf16, rows, {.machine = "mine", .source = "mine.csv"});
  EXPECT_TRUE(fit.has_few);
  EXPECT_GE(fit.distance, 0.2);
  EXPECT_EQ(fit.held_out.rows, 0U);
  EXPECT_LT(fit.fitted.max, 0.05);
  ASSERT_FALSE(fit.fitted_parameters.empty());
  EXPECT_LE(fit.fitted_parameters.size(), 3U);
  EXPECT_LT(fit.parameters.burst_efficiency.value, 0.85 * 0.8357);
  EXPECT_GT(fit.parameters.burst_efficiency.standard_error, 0.02);
  EXPECT_EQ(fit.parameters.burst_efficiency.source, "mine.csv");
  const Accelerator base = h100_accelerator();
  const GemmParameters& before = base.matrix_unit(DType::bf16).gemm;
  EXPECT_EQ(fit.parameters.hbm_efficiency.value, before.hbm_efficiency.value);
  EXPECT_EQ(fit.parameters.hbm_efficiency.standard_error, before.hbm_efficiency.standard_error);
  EXPECT_EQ(fit.parameters.hbm_efficiency.source, before.hbm_efficiency.source);
  EXPECT_EQ(fit.parameters.split_overhead.value, before.split_overhead.value);
  EXPECT_EQ(fit.fitted_parameters.size() + fit.left.size(), 18U);
  const std::string yaml = gemm_yaml(fit, 8);
  EXPECT_NE(yaml.find("        burst_efficiency: {value: 0."), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("hbm_efficiency"), std::string::npos) << yaml;
}

TEST(FewRows, CorrectlyPricedGemmsMoveNothing) {
  std::vector<MeasuredGemm> rows;
  for (const std::int64_t m : {128, 1024, 4096}) {
    rows.push_back(measured_gemm(h100_accelerator(), m, 4096, 4096));
    rows.back().time = from_seconds(1.03 * to_seconds(rows.back().time));
  }
  const GemmFit fit = fit_gemm(h100_accelerator(), DType::bf16, rows, {.machine = "mine", .source = "mine.csv"});
  EXPECT_TRUE(fit.fitted_parameters.empty());
  EXPECT_EQ(fit.distance, 0.0);
  EXPECT_EQ(gemm_yaml(fit, 8), "");
}

TEST(FewRows, AParameterAtItsLimitIsAsUncertainAsItsPrior) {
  MeasuredGemm row = measured_gemm(h100_accelerator(), 8192, 8192, 8192);
  row.time = from_seconds(30.0 * to_seconds(row.time));  // No prior allows a time this long.
  const GemmFit fit = fit_gemm(h100_accelerator(), DType::bf16, std::vector<MeasuredGemm>{row},
                               {.machine = "mine", .source = "mine.csv"});
  const auto stopped =
      std::find_if(fit.fitted_parameters.begin(), fit.fitted_parameters.end(),
                   [](const FittedParameter& parameter) { return parameter.name == "burst_efficiency"; });
  ASSERT_NE(stopped, fit.fitted_parameters.end());
  EXPECT_TRUE(stopped->undecided);
  EXPECT_GE(stopped->standard_error, fit.distance);
  EXPECT_GE(fit.distance, 0.2);
  EXPECT_EQ(fit.parameters.burst_efficiency.standard_error, stopped->standard_error);
  EXPECT_EQ(fit.parameters.burst_efficiency.source, "mine.csv (undecided)");
}

TEST(FewRows, AThousandCallsOfThreeSizesCountAsThreeRows) {
  Accelerator machine = h100_accelerator();
  gemm_of(machine).hbm_efficiency.value *= 0.7;
  gemm_of(machine).burst_efficiency.value *= 0.8;
  std::vector<MeasuredGemm> single_calls{measured_gemm(machine, 1, 4096, 14336),
                                         measured_gemm(machine, 8192, 14336, 4096),
                                         measured_gemm(machine, 512, 4096, 4096)};
  std::vector<MeasuredGemm> repeated_calls;
  for (int call = 0; call < 333; ++call) {
    for (MeasuredGemm row : single_calls) {
      row.time = from_seconds(to_seconds(row.time) * (call % 3 == 0 ? 1.4 : call % 3 == 1 ? 0.9 : 1.0));
      repeated_calls.push_back(row);
    }
  }
  const GemmFitOptions options{.machine = "mine", .source = "mine.csv"};
  const GemmFit single = fit_gemm(h100_accelerator(), DType::bf16, single_calls, options);
  const GemmFit many = fit_gemm(h100_accelerator(), DType::bf16, repeated_calls, options);
  EXPECT_TRUE(many.has_few);
  EXPECT_EQ(many.medians.size(), 3U);
  ASSERT_EQ(single.fitted_parameters.size(), many.fitted_parameters.size());
  for (std::size_t i = 0; i < single.fitted_parameters.size(); ++i) {
    EXPECT_EQ(single.fitted_parameters[i].value, many.fitted_parameters[i].value);
    EXPECT_GT(many.fitted_parameters[i].standard_error, 0.02) << many.fitted_parameters[i].name;
  }
}

TEST(FewRows, KernelsOfAnUnmeasuredMachineMoveItsOnlyEfficiency) {
  Accelerator base = h100_accelerator();
  base.framework_kernels.reset();
  Accelerator machine = base;
  machine.memory_bound_efficiency.value *= 0.7;
  MeasuredFrameworkKernel row{.op = "add",
                              .size = {.rows = 8192, .width = 8192, .traffic = Bytes{3L * 8192 * 8192 * 2}}};
  row.time = from_seconds(predicted(machine, row));
  const FrameworkKernelFit fit =
      fit_framework_kernels(base, std::vector<MeasuredFrameworkKernel>{row}, "mine", "mine.csv");
  ASSERT_EQ(fit.fitted_parameters.size(), 1U);
  EXPECT_NEAR(fit.accelerator.memory_bound_efficiency.value / base.memory_bound_efficiency.value, 0.7, 0.1);
  EXPECT_EQ(framework_kernels_yaml(fit, 2).rfind("  memory_bound_efficiency: {value: 0.", 0), 0U);
}

// The law: A file that is fitted to a few rows of a machine prices the machine's other rows no worse than the base
// does.

struct Law {
  int draws = 0;
  int worse = 0;        ///< Fits whose median error is worse by more than a percentage point.
  double worst = 0.0;   ///< Largest growth of the median error.
  double before = 0.0;  ///< Median error of the base, averaged over all draws.
  double after = 0.0;   ///< Median error of the fits, averaged over all draws.
};

template <class Row>
double median_error(const Accelerator& accelerator, const std::vector<Row>& rows) {
  std::vector<double> errors;
  for (const Row& row : rows) {
    errors.push_back(std::abs(predicted(accelerator, row) / to_seconds(row.time) - 1.0));
  }
  return quantile(std::move(errors), 0.5);
}

/// Returns `shapes` with times measured on the machine. The errors are sums of three uniform numbers, with a standard
/// deviation of 5%.
template <class Row>
std::vector<Row> measured_rows(const Accelerator& machine, std::vector<Row> shapes, std::uint32_t seed) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(3 * i);
    const double sum =
        uniform_number(seed, index) + uniform_number(seed, index + 1) + uniform_number(seed, index + 2) - 1.5;
    shapes[i].time = from_seconds(predicted(machine, shapes[i]) * std::exp(0.1 * sum));
  }
  return shapes;
}

/// Makes rows of `machine_of(seed)` for each of 40 seeds. `count` of these rows calibrate the base, and the rest test
/// the result.
template <class Row, class MachineOf>
Law law_of(const std::vector<Row>& shapes, std::size_t count, const MachineOf& machine_of) {
  Law law;
  const Accelerator base = h100_accelerator();
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::vector<Row> rows = measured_rows(machine_of(seed), shapes, seed);
    std::vector<Row> seen;
    for (std::size_t i = 0; i < count; ++i) {
      const auto index = static_cast<std::size_t>(uniform_number(seed, static_cast<std::uint32_t>(90'000 + i)) *
                                                  static_cast<double>(rows.size()));
      seen.push_back(rows[index]);
      rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(index));
    }
    const double before = median_error(base, rows);
    const double after = median_error(fitted(base, seen), rows);
    ++law.draws;
    law.worse += after > before + 0.01 ? 1 : 0;
    law.worst = std::max(law.worst, after - before);
    law.before += before / 40.0;
    law.after += after / 40.0;
  }
  return law;
}

/// Returns the factor of a parameter. For seeds above 10, a third of the factors are 1, a third are 10 to 30% lower,
/// and a third are 10 to 30% higher. Seeds up to 10 are the base itself.
double factor(std::uint32_t seed, std::uint32_t parameter) {
  const double size = 0.1 + 0.2 * uniform_number(seed, 80'000 + parameter);
  const double sign = uniform_number(seed, 81'000 + parameter);
  return seed <= 10 || sign < 1.0 / 3.0 ? 1.0 : sign < 2.0 / 3.0 ? 1.0 - size : 1.0 + size;
}
void scale(Parameter<double>& parameter, double factor, double limit = 10.0) {
  parameter.value = std::min(limit, parameter.value * factor);
}
void scale(Parameter<Duration>& parameter, double factor) {
  parameter.value = from_seconds(to_seconds(parameter.value) * factor);
}

void expect_law(const std::string& name, std::size_t count, const Law& law) {
  const std::string text = fmt::format(
      "{}, {} rows: median error {:.3f} before, {:.3f} after; {} of {} fits worse by more than a "
      "point, {:.3f} at most",
      name, count, law.before, law.after, law.worse, law.draws, law.worst);
  EXPECT_LT(law.after, law.before + 0.002) << text;
  EXPECT_LE(law.worse, law.draws / 8) << text;
  EXPECT_LT(law.worst, 0.06) << text;
  if (count >= 10) {
    EXPECT_LT(law.after, 0.85 * law.before) << text;
  }
}

TEST(FewRows, UnseenGemmsArePricedNoWorse) {
  std::vector<MeasuredGemm> shapes;
  for (const std::int64_t n : {1024, 4096, 14336}) {
    for (const std::int64_t k : {1024, 4096, 14336}) {
      for (const std::int64_t m : {1, 64, 512, 1024, 4096, 16384}) {
        shapes.push_back({.size = {.m = m, .n = n, .k = k}});
      }
    }
  }
  const auto machine_of = [](std::uint32_t seed) {
    Accelerator machine = h100_accelerator();
    GemmParameters& gemm = gemm_of(machine);
    scale(gemm.loop_efficiency, factor(seed, 0));
    scale(gemm.hbm_efficiency, factor(seed, 1), 1.0);
    scale(gemm.burst_efficiency, factor(seed, 2));
    scale(gemm.ramp, factor(seed, 3));
    scale(gemm.split_overhead, factor(seed, 4));
    scale(gemm.output_cost, factor(seed, 5));
    return machine;
  };
  for (const std::size_t count : {1U, 3U, 5U, 10U, 20U}) {
    expect_law("GEMMs", count, law_of(shapes, count, machine_of));
  }
}

TEST(FewRows, UnseenAttentionIsPricedNoWorse) {
  std::vector<MeasuredAttention> shapes;
  for (const std::int64_t heads : {8, 16, 32}) {
    for (const std::int64_t seq : {256, 1024, 2048, 4096, 8192}) {
      for (const std::int64_t batch : {1, 2, 4, 8}) {
        shapes.push_back({.size = {.batch = batch, .seq = seq, .heads = heads, .kv_heads = heads / 4}});
      }
    }
  }
  const auto machine_of = [](std::uint32_t seed) {
    Accelerator machine = h100_accelerator();
    scale(machine.attention.overhead, factor(seed, 0));
    scale(machine.attention.loop_efficiency, factor(seed, 1), 1.0);
    scale(machine.attention.tile_overhead, factor(seed, 2));
    scale(machine.attention.query_cost, factor(seed, 3));
    machine.attention.exponentials.value.value *= factor(seed, 4);
    return machine;
  };
  for (const std::size_t count : {1U, 3U, 5U, 10U, 20U}) {
    expect_law("attention", count, law_of(shapes, count, machine_of));
  }
}

TEST(FewRows, UnseenKernelsArePricedNoWorse) {
  std::vector<MeasuredFrameworkKernel> shapes;
  for (const FrameworkKernel kernel :
       {FrameworkKernel::sum, FrameworkKernel::norm, FrameworkKernel::activation, FrameworkKernel::rotation}) {
    for (const std::int64_t width : {1024, 4096, 14336}) {
      for (const std::int64_t rows : {16, 256, 1024, 4096, 16384}) {
        shapes.push_back(
            {.op = "op", .size = {.kernel = kernel, .rows = rows, .width = width, .traffic = Bytes{6 * rows * width}}});
      }
    }
  }
  const auto machine_of = [](std::uint32_t seed) {
    Accelerator machine = h100_accelerator();
    FrameworkKernels& kernels = *machine.framework_kernels;
    scale(kernels.floor, factor(seed, 0));
    scale(kernels.sum_efficiency, factor(seed, 1), 1.0);
    scale(kernels.norm_efficiency, factor(seed, 2), 1.0);
    scale(kernels.norm_step, factor(seed, 3));
    scale(kernels.activation_efficiency, factor(seed, 4), 1.0);
    scale(kernels.rotation_step, factor(seed, 5));
    return machine;
  };
  for (const std::size_t count : {1U, 3U, 5U, 10U, 20U}) {
    expect_law("kernels", count, law_of(shapes, count, machine_of));
  }
}

}  // namespace
}  // namespace commfuse
