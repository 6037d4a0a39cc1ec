// SPDX-License-Identifier: Apache-2.0
#include "model/fit/robust_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "model/random/philox.h"

namespace commfuse {
namespace {

// A link of 7 us and 350 GB/s, in microseconds and bytes: time = latency + bytes / rate.
constexpr double true_latency = 7.0;
constexpr double true_rate = 350e3;

struct Row {
  double bytes = 0.0;
  double time = 0.0;
};

double normal_number(std::uint32_t row, std::uint64_t seed) {
  const PhiloxWords words = philox({row, 0, 0, 0}, seed);
  const double u = (words[0] + 0.5) / 4294967296.0;
  const double angle = 2.0 * std::numbers::pi * words[1] / 4294967296.0;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

/// Returns rows of sizes from 1 KiB to 512 MiB, with each time multiplied by a lognormal factor.
std::vector<Row> noisy_rows(double noise, std::uint64_t seed) {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < 60; ++i) {
    const double bytes = 1024.0 * std::exp2(i / 59.0 * 19.0);
    rows.push_back({bytes, (true_latency + bytes / true_rate) * std::exp(noise * normal_number(i, seed))});
  }
  return rows;
}

Residuals residuals_of(const std::vector<Row>& rows) {
  return [rows](std::span<const double> values, std::span<double> residuals) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      residuals[i] = std::log((values[0] + rows[i].bytes / values[1]) / rows[i].time);
    }
  };
}

std::vector<FitParameter> parameters() { return {{"latency", 1.0, 1e-3, 1e3}, {"rate", 1e4, 1.0, 1e9}}; }

TEST(RobustFit, FindsTheParametersOfExactRows) {
  const std::vector<Row> rows = noisy_rows(0.0, 1);
  const RobustFit fit = robust_fit(parameters(), rows.size(), residuals_of(rows));
  EXPECT_TRUE(fit.converged);
  EXPECT_EQ(fit.parameters[0].name, "latency");
  EXPECT_NEAR(fit.parameters[0].value, true_latency, 1e-5);
  EXPECT_NEAR(fit.parameters[1].value / true_rate, 1.0, 1e-6);
  EXPECT_LT(fit.parameters[0].standard_error, 1e-5);
}

TEST(RobustFit, OutliersMoveItLittleButMoveLeastSquaresMuch) {
  std::vector<Row> rows = noisy_rows(0.02, 2);
  for (std::size_t i = 3; i < rows.size(); i += 10) {
    rows[i].time *= 5.0;
  }
  const RobustFit robust = robust_fit(parameters(), rows.size(), residuals_of(rows));
  const RobustFit least_squares =
      robust_fit(parameters(), rows.size(), residuals_of(rows), {.huber = std::numeric_limits<double>::infinity()});
  EXPECT_NEAR(robust.parameters[0].value, true_latency, 0.02 * true_latency);
  EXPECT_NEAR(robust.parameters[1].value, true_rate, 0.02 * true_rate);
  EXPECT_GT(std::abs(least_squares.parameters[0].value - true_latency), 0.08 * true_latency);
}

TEST(RobustFit, IntervalsCoverTheTrueValueIn95PercentOfTrials) {
  constexpr int experiments = 400;
  int covered = 0;
  for (int seed = 0; seed < experiments; ++seed) {
    const std::vector<Row> rows = noisy_rows(0.05, 100 + static_cast<std::uint64_t>(seed));
    const RobustFit fit = robust_fit(parameters(), rows.size(), residuals_of(rows));
    const FittedParameter& rate = fit.parameters[1];
    covered += std::abs(std::log(rate.value / true_rate)) < 1.96 * rate.standard_error ? 1 : 0;
  }
  EXPECT_GE(covered, experiments * 91 / 100);  // 95%; White's errors are slightly too small with 60 rows.
  EXPECT_LE(covered, experiments * 98 / 100);
}

TEST(RobustFit, RowsRepeatedInAGroupAddNoInformation) {
  const std::vector<Row> single_rows = noisy_rows(0.05, 3);
  std::vector<Row> repeated_rows;
  FitOptions options;
  for (std::size_t i = 0; i < single_rows.size(); ++i) {
    repeated_rows.insert(repeated_rows.end(), 9, single_rows[i]);
    options.groups.insert(options.groups.end(), 9, static_cast<int>(i));
  }
  const RobustFit single = robust_fit(parameters(), single_rows.size(), residuals_of(single_rows));
  const RobustFit grouped = robust_fit(parameters(), repeated_rows.size(), residuals_of(repeated_rows), options);
  options.groups.clear();
  const RobustFit ungrouped = robust_fit(parameters(), repeated_rows.size(), residuals_of(repeated_rows), options);
  const double error = single.parameters[1].standard_error;
  EXPECT_NEAR(grouped.parameters[1].standard_error / error, 1.0, 0.03);
  EXPECT_NEAR(ungrouped.parameters[1].standard_error / error, 1.0 / 3.0, 0.02);
}

TEST(RobustFit, AParameterAtItsBoundIsReportedAsUndetermined) {
  const std::vector<Row> rows = noisy_rows(0.01, 4);
  std::vector<FitParameter> bounded = parameters();
  bounded[0].upper = 5.0;
  const RobustFit fit = robust_fit(bounded, rows.size(), residuals_of(rows));
  EXPECT_DOUBLE_EQ(fit.parameters[0].value, 5.0);
  EXPECT_TRUE(fit.parameters[0].undecided);
  EXPECT_EQ(fit.parameters[0].standard_error, 0.0);
  EXPECT_FALSE(fit.parameters[1].undecided);
  EXPECT_GT(fit.parameters[1].standard_error, 0.0);
}

TEST(RobustFit, FixedParametersStayWhileTheOthersAreFitted) {
  const std::vector<Row> rows = noisy_rows(0.0, 5);
  std::vector<FitParameter> with_fixed_rate = parameters();
  with_fixed_rate[1] = {"rate", true_rate, true_rate, true_rate};
  const RobustFit fit = robust_fit(with_fixed_rate, rows.size(), residuals_of(rows));
  EXPECT_DOUBLE_EQ(fit.parameters[1].value, true_rate);
  EXPECT_FALSE(fit.parameters[1].undecided);
  EXPECT_NEAR(fit.parameters[0].value, true_latency, 1e-5);
}

TEST(RobustFit, AParameterWithoutInfluenceKeepsItsStart) {
  const std::vector<Row> rows = noisy_rows(0.01, 6);
  std::vector<FitParameter> more = parameters();
  more.push_back({"idle", 3.0, 1.0, 9.0});
  const RobustFit fit = robust_fit(more, rows.size(), residuals_of(rows));
  EXPECT_DOUBLE_EQ(fit.parameters[2].value, 3.0);
  EXPECT_TRUE(fit.parameters[2].undecided);
  EXPECT_NEAR(fit.parameters[0].value, true_latency, 0.02 * true_latency);
}

TEST(RobustFit, TheSpreadEqualsTheNoise) {
  const std::vector<Row> rows = noisy_rows(0.05, 7);
  const RobustFit fit = robust_fit(parameters(), rows.size(), residuals_of(rows));
  EXPECT_NEAR(fit.spread, 0.05, 0.015);
  EXPECT_EQ(fit.residuals.size(), rows.size());
}

TEST(Quantile, InterpolatesBetweenOrderedValues) {
  EXPECT_DOUBLE_EQ(quantile({4.0, 1.0, 3.0, 2.0}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4.0, 1.0, 3.0, 2.0}, 1.0), 4.0);
  EXPECT_DOUBLE_EQ(quantile({7.0}, 0.9), 7.0);
}

}  // namespace
}  // namespace commfuse
