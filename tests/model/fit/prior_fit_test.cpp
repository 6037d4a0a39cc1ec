// SPDX-License-Identifier: Apache-2.0
#include "model/fit/prior_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace commfuse {
namespace {

/// The time of row i is the value of parameter i, `values[i]`; it was measured as `measured[i]`.
class Times {
 public:
  Times(std::vector<double> starts, std::vector<double> measured) : values_(starts), measured_(std::move(measured)) {
    for (const double start : starts) {
      parameters.push_back({.name = "p" + std::to_string(parameters.size()), .start = start, .spread = 0.2});
    }
  }

  [[nodiscard]] PriorRows rows() {
    return {.count = measured_.size(),
            .put = [this](std::size_t i, double value) { values_[i] = value; },
            .log_ratio = [this](std::size_t row) { return std::log(values_[row] / measured_[row]); },
            .weight = [](std::size_t) { return 1.0; }};
  }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

  std::vector<PriorParameter> parameters;

 private:
  std::vector<double> values_;
  std::vector<double> measured_;
};

PriorFitOptions least_squares() {
  return {.noise = 0.1,
          .is_noise_known = true,
          .fit = {.huber = std::numeric_limits<double>::infinity(), .tolerance = 1e-14}};
}

TEST(PriorFit, OneRowFollowsBayesRule) {
  // Prior ln p = 0 +- 0.2, row ln p = 0.25 +- 0.1: mean 0.25 x 0.04 / (0.04 + 0.01) = 0.2, error (25 + 100)^(-1/2).
  Times times({1.0}, {std::exp(0.25)});
  const PriorFit fit = prior_fit(times.parameters, times.rows(), least_squares());
  ASSERT_EQ(fit.parameters.size(), 1U);
  EXPECT_NEAR(std::log(fit.parameters[0].value), 0.2, 1e-6);
  EXPECT_NEAR(fit.parameters[0].standard_error, 1.0 / std::sqrt(125.0), 1e-6);
  EXPECT_EQ(fit.parameters[0].start, 1.0);
  EXPECT_EQ(times.values()[0], fit.parameters[0].value);
  EXPECT_TRUE(fit.left.empty());
}

TEST(PriorFit, KeepsAndDoesNotNameUnusedParameters) {
  Times times({1.0, 3.25}, {1.2});
  const PriorFit fit = prior_fit(times.parameters, times.rows(), least_squares());
  EXPECT_EQ(fit.places, std::vector<std::size_t>{0});
  EXPECT_TRUE(fit.left.empty());
  EXPECT_EQ(times.values()[1], 3.25);
}

TEST(PriorFit, KeepsParametersThatARowHardlyDecides) {
  Times times({1.0, 1.0}, {1.2, 1.2});
  PriorRows rows = times.rows();
  // The weight of the second row gives it an error of 10, far above the prior's 0.2.
  rows.weight = [](std::size_t row) { return row == 0 ? 1.0 : 0.01; };
  PriorFitOptions options = least_squares();
  options.decided = 0.9;
  const PriorFit fit = prior_fit(times.parameters, rows, options);
  EXPECT_EQ(fit.places, std::vector<std::size_t>{0});
  EXPECT_EQ(fit.left, std::vector<std::string>{"p1"});
  EXPECT_EQ(times.values()[1], 1.0);
}

TEST(PriorFit, TheRowsDecideTheDistanceOfTheMachineFromItsBase) {
  PriorFitOptions options = least_squares();
  options.distances = {0.0, 0.1, 0.2, 0.4, 0.8};
  const auto distance_at = [&](double log) {
    Times times({1.0}, {std::exp(log)});
    times.parameters[0].spread = 0.01;
    return prior_fit(times.parameters, times.rows(), options).distance;
  };
  EXPECT_EQ(distance_at(0.0), 0.0);
  EXPECT_EQ(distance_at(0.1), 0.0);  // This distance equals the error of the row.
  EXPECT_EQ(distance_at(0.4), 0.4);
  EXPECT_EQ(distance_at(-0.4), 0.4);
  EXPECT_EQ(distance_at(5.0), 0.8);
}

TEST(PriorFit, AParameterThatManyRowsHardlyDecideKeepsItsSpread) {
  // Row i is ln p0 +- 0.001 ln p1, measured 0.01 above or below 0. The prior of ln p0 and ln p1 is 0 +- 0.2.
  double p0 = 1.0;
  double p1 = 1.0;
  const PriorRows rows{.count = 40,
                       .put = [&](std::size_t i, double value) { (i == 0 ? p0 : p1) = value; },
                       .log_ratio =
                           [&](std::size_t row) {
                             const double slope = row % 2 == 0 ? 0.001 : -0.001;
                             const double measured = row % 4 < 2 ? 0.01 : -0.01;
                             return std::log(p0) + slope * std::log(p1) - measured;
                           },
                       .weight = [](std::size_t) { return 1.0; }};
  PriorFitOptions options = least_squares();
  options.has_few = false;
  const PriorFit fit = prior_fit(Times({1.0, 1.0}, {}).parameters, rows, options);
  ASSERT_EQ(fit.parameters.size(), 2U);
  // Ridge regression with penalty 0.1^2 / 0.2^2 = 0.25: variance (40 x 0.014826^2 + 0.25^2 x 0.2^2) / 40.25^2, where
  // 0.014826 is the normal spread of residuals whose median size is 0.01.
  EXPECT_NEAR(fit.parameters[0].standard_error, std::sqrt(40.0 * 0.014826 * 0.014826 + 0.0025) / 40.25, 1e-5);
  EXPECT_NEAR(fit.parameters[1].standard_error, 0.2, 1e-4);
}

}  // namespace
}  // namespace commfuse
