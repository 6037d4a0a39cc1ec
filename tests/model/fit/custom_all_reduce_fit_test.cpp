// SPDX-License-Identifier: Apache-2.0
#include "model/fit/custom_all_reduce_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "model/cost/custom_all_reduce.h"
#include "model/fit/link_yaml.h"
#include "tests/noise.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

constexpr BytesPerSecond capacity{450e9};

CustomAllReduce invented_kernels() {
  CustomAllReduce kernels;
  kernels.up_to = {.value = Bytes{8 << 20}, .provenance = Provenance::published, .source = "made up"};
  kernels.one_shot_latency.value = 4us;
  kernels.one_shot_step.value = 100ns;
  kernels.one_shot_rate.value = {250e9};
  kernels.two_shot_latency.value = 7us;
  kernels.two_shot_step.value = 400ns;
  kernels.two_shot_rate.value = {300e9};
  return kernels;
}

/// Returns rows from 256 B to 8 MiB for these numbers of ranks, with each time multiplied by `factor()`.
template <class Factor>
std::vector<CustomAllReduceRow> all_reduce_rows(const CustomAllReduce& kernels, const std::vector<int>& ranks,
                                                Factor factor) {
  std::vector<CustomAllReduceRow> rows;
  for (const int n : ranks) {
    for (std::int64_t bytes = 256; bytes <= std::int64_t{8} << 20; bytes *= 2) {
      rows.push_back({n, Bytes{bytes}, to_microseconds(custom_all_reduce_time(kernels, n, Bytes{bytes})) * factor()});
    }
  }
  return rows;
}

CustomAllReduceFit fit(const std::vector<CustomAllReduceRow>& rows) {
  return fit_custom_all_reduce(rows, invented_kernels().up_to, capacity, "rows.csv");
}

double number(Duration time) { return to_microseconds(time); }
double number(BytesPerSecond rate) { return rate.value; }

/// Calls `visit(fitted, truth)` for each of the six parameters.
template <class Visit>
void each_parameter(const CustomAllReduce& fitted, const CustomAllReduce& truth, const Visit& visit) {
  visit(fitted.one_shot_latency, truth.one_shot_latency);
  visit(fitted.one_shot_step, truth.one_shot_step);
  visit(fitted.one_shot_rate, truth.one_shot_rate);
  visit(fitted.two_shot_latency, truth.two_shot_latency);
  visit(fitted.two_shot_step, truth.two_shot_step);
  visit(fitted.two_shot_rate, truth.two_shot_rate);
}

TEST(CustomAllReduceFit, ExactRowsReproduceTheirConstants) {
  const CustomAllReduceFit result = fit(all_reduce_rows(invented_kernels(), {2, 4, 8}, [] { return 1.0; }));
  each_parameter(result.parameters, invented_kernels(), [](const auto& fitted, const auto& truth) {
    EXPECT_NEAR(number(fitted.value) / number(truth.value), 1.0, 0.002);
    EXPECT_EQ(fitted.provenance, Provenance::fitted);
    EXPECT_EQ(fitted.source, "rows.csv");
  });
  EXPECT_EQ(result.parameters.up_to.value, Bytes{8 << 20});
  EXPECT_EQ(result.parameters.up_to.provenance, Provenance::published);
}

TEST(CustomAllReduceFit, NoisyRowsReproduceTheirConstantsWithinTheErrors) {
  Noise noise;
  std::vector<CustomAllReduceRow> rows = all_reduce_rows(invented_kernels(), {2, 4, 8}, [&] { return noise.factor(); });
  rows[20].time_us *= 3.0;  // an interrupted measurement
  const CustomAllReduceFit result = fit(rows);
  each_parameter(result.parameters, invented_kernels(), [](const auto& fitted, const auto& truth) {
    EXPECT_GT(fitted.standard_error, 0.001);
    EXPECT_LT(fitted.standard_error, 0.25);
    EXPECT_LT(std::abs(std::log(number(fitted.value) / number(truth.value))), 3.0 * fitted.standard_error);
  });
  EXPECT_LT(result.spread, 0.02);
}

TEST(CustomAllReduceFit, TheOrderOfRowsDoesNotMatter) {
  Noise noise;
  std::vector<CustomAllReduceRow> rows = all_reduce_rows(invented_kernels(), {2, 4, 8}, [&] { return noise.factor(); });
  const std::string lines = custom_all_reduce_yaml(fit(rows).parameters, 0);
  std::ranges::reverse(rows);
  EXPECT_EQ(custom_all_reduce_yaml(fit(rows).parameters, 0), lines);
}

TEST(CustomAllReduceFit, TwoRanksLeaveTwoShotsUndecided) {
  const CustomAllReduceFit result = fit(all_reduce_rows(invented_kernels(), {2}, [] { return 1.0; }));
  EXPECT_NEAR(number(result.parameters.one_shot_rate.value), 250e9, 1e9);
  EXPECT_LT(result.parameters.one_shot_rate.standard_error, 0.05);
  for (const FittedParameter& parameter : result.fitted_parameters) {
    if (parameter.name.starts_with("two_shot")) {
      EXPECT_TRUE(parameter.undecided) << parameter.name;
      EXPECT_EQ(parameter.standard_error, 1.0) << parameter.name;
    }
  }
}

TEST(CustomAllReduceFit, RatesAreAtMostTheRatesOfTheWires) {
  CustomAllReduce faster = invented_kernels();
  faster.two_shot_rate.value = {900e9};
  const CustomAllReduceFit result = fit(all_reduce_rows(faster, {2, 4, 8}, [] { return 1.0; }));
  EXPECT_EQ(result.parameters.two_shot_rate.value.value, capacity.value);
  const auto& rate = result.fitted_parameters.back();
  EXPECT_EQ(rate.name, "two_shot_rate");
  EXPECT_TRUE(rate.at_capacity);
  EXPECT_FALSE(rate.undecided);
}

TEST(CustomAllReduceFit, TwoShotsTakeNoLessLatencyThanOne) {
  CustomAllReduce cheap_two_shots = invented_kernels();
  cheap_two_shots.two_shot_latency.value = 3us;
  cheap_two_shots.two_shot_step.value = 50ns;
  const CustomAllReduce fitted = fit(all_reduce_rows(cheap_two_shots, {2, 4, 8}, [] { return 1.0; })).parameters;
  EXPECT_GE(fitted.two_shot_latency.value, fitted.one_shot_latency.value);
  EXPECT_GE(fitted.two_shot_step.value, fitted.one_shot_step.value);
}

}  // namespace
}  // namespace commfuse
