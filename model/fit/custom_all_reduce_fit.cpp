// SPDX-License-Identifier: Apache-2.0
#include "model/fit/custom_all_reduce_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "model/check.h"
#include "model/cost/custom_all_reduce.h"
#include "model/fit/prior_fit.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

using Eigen::MatrixXd;

/// Numbers that the search varies: latency and step of one shot in microseconds, its rate as a share of the capacity,
/// latency and step of two shots as multiples of the values of one shot, and the rate of two shots as a share of the
/// capacity.
constexpr std::size_t size = 6;
using Values = std::array<double, size>;
enum ValueIndex : std::uint8_t { latency, step, rate, latency_ratio, step_ratio, two_shot_rate };

constexpr std::array<const char*, size> names{"one_shot_latency", "one_shot_step", "one_shot_rate",
                                              "two_shot_latency", "two_shot_step", "two_shot_rate"};
constexpr Values lower{0.1, 0.005, 1e-3, 1.0, 1.0, 1e-3};  // a step below 5 ns is smaller than a clock's error
constexpr Values upper{1e3, 1e3, 1.0, 1e3, 1e3, 1.0};
/// Change of a logarithm for derivatives: times are whole picoseconds, and a step is only a few of them.
constexpr double difference_step = 0.01;
constexpr double least_noise = 0.01;  // error of clocks for a row of a few microseconds

/// The rows, and the parameters that the search tries.
class AllReduceProblem {
 public:
  AllReduceProblem(std::span<const CustomAllReduceRow> rows, BytesPerSecond capacity, CustomAllReduce& kernels)
      : rows_(rows), capacity_(capacity), kernels_(kernels) {}

  void put(std::span<const double> values) {
    const auto time = [](double us) { return from_seconds(1e-6 * us); };
    kernels_.one_shot_latency.value = time(values[latency]);
    kernels_.one_shot_step.value = time(values[step]);
    kernels_.one_shot_rate.value = {values[rate] * capacity_.value};
    kernels_.two_shot_latency.value = time(values[latency] * values[latency_ratio]);
    kernels_.two_shot_step.value = time(values[step] * values[step_ratio]);
    kernels_.two_shot_rate.value = {values[two_shot_rate] * capacity_.value};
  }

  void residuals(std::span<const double> values, std::span<double> out) {
    put(values);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Duration predicted = custom_all_reduce_time(kernels_, rows_[i].ranks, rows_[i].total);
      out[i] = math::log(to_microseconds(predicted) / rows_[i].time_us);
    }
  }

  /// Returns the best of several fits, because a row may belong to either kernel. The fits start around the fastest
  /// row.
  RobustFit fit() {
    double fastest_us = upper[latency];
    for (const CustomAllReduceRow& row : rows_) {
      fastest_us = std::min(fastest_us, row.time_us);
    }
    std::optional<RobustFit> best;
    for (const double one_shot_rate : {0.2, 0.6, 0.9}) {
      for (const double other_rate : {0.3, 0.6, 0.9}) {
        for (const double ratio : {1.1, 2.0, 6.0}) {
          RobustFit tried = fit_from({fastest_us, 0.02 * fastest_us, one_shot_rate, ratio, ratio, other_rate});
          if (!best || tried.loss < best->loss) {
            best = std::move(tried);
          }
        }
      }
    }
    put(best->values());
    return *std::move(best);
  }

  /// Returns the standard deviations of the six logarithms by Bayes' rule: each has a prior standard deviation of 1 (a
  /// factor of e), and all rows have the same noise, because either kernel may have very few rows.
  [[nodiscard]] Values errors(const Values& values, double noise) {
    MatrixXd slopes(static_cast<Eigen::Index>(rows_.size()), static_cast<Eigen::Index>(size));
    for (std::size_t i = 0; i < size; ++i) {
      Values above = values;
      Values below = values;
      above[i] *= math::exp(difference_step);
      below[i] *= math::exp(-difference_step);
      slopes.col(static_cast<Eigen::Index>(i)) = (logs(above) - logs(below)) / (2.0 * difference_step);
    }
    const MatrixXd unit = MatrixXd::Identity(static_cast<Eigen::Index>(size), static_cast<Eigen::Index>(size));
    const MatrixXd precision = slopes.transpose() * slopes / (noise * noise) + unit;
    MatrixXd to_parameters = unit;
    to_parameters(latency_ratio, latency) = 1.0;
    to_parameters(step_ratio, step) = 1.0;
    const MatrixXd covariance = to_parameters * precision.ldlt().solve(unit) * to_parameters.transpose();
    Values errors{};
    for (std::size_t i = 0; i < size; ++i) {
      errors[i] =
          std::clamp(std::sqrt(covariance(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(i))), 0.0, 1.0);
    }
    return errors;
  }

 private:
  RobustFit fit_from(const Values& start) {
    std::vector<FitParameter> parameters;
    for (std::size_t i = 0; i < size; ++i) {
      parameters.push_back(
          {.name = names[i], .start = std::clamp(start[i], lower[i], upper[i]), .lower = lower[i], .upper = upper[i]});
    }
    return robust_fit(parameters, rows_.size(),
                      [this](std::span<const double> values, std::span<double> out) { residuals(values, out); },
                      {.spread = residual_of_a_row, .difference_step = difference_step});
  }

  Eigen::VectorXd logs(const Values& values) {
    Eigen::VectorXd out(static_cast<Eigen::Index>(rows_.size()));
    residuals(values, {out.data(), rows_.size()});
    return out;
  }

  std::span<const CustomAllReduceRow> rows_;
  BytesPerSecond capacity_;
  CustomAllReduce& kernels_;
};

template <class T>
void conclude(Parameter<T>& parameter, double value, double error, const std::string& source, FittedParameter& fitted) {
  parameter.standard_error = error;
  parameter.provenance = Provenance::fitted;
  parameter.source = source;
  fitted.value = value;
  fitted.standard_error = error;
}

}  // namespace

CustomAllReduceFit fit_custom_all_reduce(std::span<const CustomAllReduceRow> rows, const Parameter<Bytes>& up_to,
                                         BytesPerSecond capacity, const std::string& source) {
  check(rows.size() >= least_custom_all_reduces, "a fit of all-reduce kernels has two rows per parameter");
  check(std::isfinite(capacity.value) && capacity.value > 0.0, "rates are shares of a known capacity");
  CustomAllReduceFit result;
  CustomAllReduce& kernels = result.parameters;
  kernels.up_to = up_to;
  AllReduceProblem problem(rows, capacity, kernels);
  const RobustFit fit = problem.fit();
  Values values{};
  std::ranges::copy(fit.values(), values.begin());
  const Values errors = problem.errors(values, std::max(fit.spread, least_noise));
  problem.put(values);
  for (std::size_t i = 0; i < size; ++i) {
    const bool at_capacity = (i == rate || i == two_shot_rate) && fit.parameters[i].undecided && values[i] >= upper[i];
    result.fitted_parameters.push_back(
        {.name = names[i], .undecided = fit.parameters[i].undecided && !at_capacity, .at_capacity = at_capacity});
  }
  const auto time = [&](ValueIndex index, Parameter<Duration>& parameter) {
    conclude(parameter, to_microseconds(parameter.value), errors[index], source, result.fitted_parameters[index]);
  };
  const auto bandwidth = [&](ValueIndex index, Parameter<BytesPerSecond>& parameter) {
    conclude(parameter, parameter.value.value, errors[index], source, result.fitted_parameters[index]);
  };
  time(latency, kernels.one_shot_latency);
  time(step, kernels.one_shot_step);
  bandwidth(rate, kernels.one_shot_rate);
  time(latency_ratio, kernels.two_shot_latency);
  time(step_ratio, kernels.two_shot_step);
  bandwidth(two_shot_rate, kernels.two_shot_rate);
  result.spread = fit.spread;
  result.converged = fit.converged;
  return result;
}

}  // namespace commfuse
