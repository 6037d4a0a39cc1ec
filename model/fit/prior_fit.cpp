// SPDX-License-Identifier: Apache-2.0
#include "model/fit/prior_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "model/check.h"
#include "model/fit/quadrature.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double nudge = 0.01;  // change of a logarithm that shows which rows depend on a parameter

std::vector<double> roots(const VectorXd& variances) {
  std::vector<double> roots;
  for (const double variance : variances) {
    roots.push_back(std::sqrt(std::max(0.0, variance)));
  }
  return roots;
}

class PriorProblem {
 public:
  PriorProblem(std::vector<PriorParameter> parameters, const PriorRows& rows, const PriorFitOptions& options)
      : parameters_(std::move(parameters)), rows_(rows), options_(options), free_(parameters_.size()) {
    std::iota(free_.begin(), free_.end(), std::size_t{0});
    put_starts();
  }

  [[nodiscard]] std::size_t size() const { return free_.size(); }
  [[nodiscard]] const std::vector<std::size_t>& free() const { return free_; }
  [[nodiscard]] const std::string& name(std::size_t i) const { return parameter(i).name; }
  [[nodiscard]] double spread(std::size_t i) const { return parameter(i).spread; }

  void drop(std::size_t i) { free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i)); }

  void put(std::span<const double> values) const {
    for (std::size_t i = 0; i < free_.size(); ++i) {
      rows_.put(free_[i], values[i]);
    }
  }
  void put_starts() const { put(starts()); }

  [[nodiscard]] std::vector<double> starts() const {
    std::vector<double> starts;
    for (std::size_t i = 0; i < size(); ++i) {
      starts.push_back(parameter(i).start);
    }
    return starts;
  }

  /// Drops the parameters on which no row depends.
  void drop_without_effect() {
    const VectorXd before = weighted_logs();
    for (std::size_t i = size(); i-- > 0;) {
      rows_.put(free_[i], parameter(i).start * math::exp(nudge));
      const bool has_effect = ((weighted_logs() - before).array().abs() > 1e-7).any();
      rows_.put(free_[i], parameter(i).start);
      if (!has_effect) {
        drop(i);
      }
    }
  }

  /// Returns the derivatives of the rows' weighted logarithms with respect to each parameter. Afterwards, the rows have
  /// the given values.
  [[nodiscard]] MatrixXd slopes(std::span<const double> values) const {
    put(values);
    MatrixXd slopes(static_cast<Eigen::Index>(rows_.count), static_cast<Eigen::Index>(size()));
    for (std::size_t i = 0; i < size(); ++i) {
      rows_.put(free_[i], values[i] * math::exp(nudge));
      const VectorXd above = weighted_logs();
      rows_.put(free_[i], values[i] * math::exp(-nudge));
      slopes.col(static_cast<Eigen::Index>(i)) = (above - weighted_logs()) / (2.0 * nudge);
      rows_.put(free_[i], values[i]);
    }
    return slopes;
  }

  [[nodiscard]] VectorXd weighted_logs() const {
    VectorXd logs(static_cast<Eigen::Index>(rows_.count));
    for (std::size_t row = 0; row < rows_.count; ++row) {
      logs(static_cast<Eigen::Index>(row)) = rows_.weight(row) * rows_.log_ratio(row);
    }
    return logs;
  }

  void widen(double distance) {
    for (PriorParameter& parameter : parameters_) {
      parameter.spread = in_quadrature(parameter.spread, distance);
    }
  }

  /// Fits the parameters. The residuals are one weighted residual per row, then one per parameter: its distance from
  /// the start. Afterwards, the rows have the fitted values.
  [[nodiscard]] RobustFit fit() const {
    std::vector<FitParameter> parameters;
    for (std::size_t i = 0; i < size(); ++i) {
      const PriorParameter& prior = parameter(i);
      const double farthest = math::exp(options_.max_spreads * prior.spread);
      parameters.push_back({.name = prior.name,
                            .start = prior.start,
                            .lower = std::max(prior.lower, prior.start / farthest),
                            .upper = std::min(prior.upper, prior.start * farthest)});
    }
    const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
      put(values);
      for (std::size_t row = 0; row < rows_.count; ++row) {
        out[row] = rows_.weight(row) * rows_.log_ratio(row);
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        out[rows_.count + i] = options_.noise / parameter(i).spread * math::log(values[i] / parameter(i).start);
      }
    };
    FitOptions fit = options_.fit;
    fit.spread = options_.is_noise_known ? options_.noise : 0.0;
    RobustFit fitted = robust_fit(parameters, rows_.count + size(), residuals, fit);
    put(fitted.values());
    return fitted;
  }

  /// Returns the spread of rows around the current fit, at least `options_.noise`.
  [[nodiscard]] double noise() const { return std::max(spread_of_rows(), options_.noise); }

  /// Returns the robust spread of ln(predicted / measured) at the current fit.
  [[nodiscard]] double spread_of_rows() const {
    std::vector<double> sizes;
    for (std::size_t row = 0; row < rows_.count; ++row) {
      sizes.push_back(std::abs(rows_.log_ratio(row)));
    }
    return normal_spread * quantile(std::move(sizes), 0.5);
  }

  /// Returns the posterior standard deviation of each logarithm, from the prior's spread and the rows, linearized at
  /// the fit (Gelman et al., "Bayesian Data Analysis", 2013, section 14.8).
  [[nodiscard]] std::vector<double> errors(std::span<const double> values, double noise) const {
    const MatrixXd slopes = this->slopes(values);
    MatrixXd precision = slopes.transpose() * slopes / (noise * noise);
    for (std::size_t i = 0; i < size(); ++i) {
      precision(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(i)) += 1.0 / (spread(i) * spread(i));
    }
    const MatrixXd covariance = precision.ldlt().solve(MatrixXd::Identity(precision.rows(), precision.cols()));
    return roots(covariance.diagonal());
  }

  /// Returns the standard deviation of each logarithm if the rows scatter by `scatter` and the truth lies one spread
  /// from its start (covariance of ridge regression; Hoerl and Kennard, Technometrics 12, 1970, plus its bias).
  [[nodiscard]] std::vector<double> ridge_errors(std::span<const double> values, double scatter) const {
    const MatrixXd slopes = this->slopes(values);
    const MatrixXd information = slopes.transpose() * slopes;
    VectorXd penalty(information.rows());
    VectorXd prior_variance(information.rows());
    for (std::size_t i = 0; i < size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      prior_variance(row) = spread(i) * spread(i);
      penalty(row) = options_.noise * options_.noise / prior_variance(row);
    }
    const MatrixXd inverse = MatrixXd(information + MatrixXd(penalty.asDiagonal()))
                                 .ldlt()
                                 .solve(MatrixXd::Identity(information.rows(), information.rows()));
    MatrixXd scattered = scatter * scatter * information;
    scattered += MatrixXd((penalty.array().square() * prior_variance.array()).matrix().asDiagonal());
    const MatrixXd covariance = inverse * scattered * inverse;
    return roots(covariance.diagonal());
  }

 private:
  [[nodiscard]] const PriorParameter& parameter(std::size_t i) const { return parameters_[free_[i]]; }

  std::vector<PriorParameter> parameters_;
  const PriorRows& rows_;
  const PriorFitOptions& options_;
  std::vector<std::size_t> free_;  // indices of the fitted parameters
};

/// Returns the distance with the largest likelihood of the rows, linearized in the parameters (type II maximum
/// likelihood; MacKay, "Bayesian Interpolation", Neural Computation 4, 1992). It is the smallest distance if the base
/// prices the rows within their noise.
double likeliest_distance(const PriorProblem& problem, const PriorFitOptions& options) {
  const MatrixXd slopes = problem.slopes(problem.starts()) / options.noise;
  const VectorXd rows = problem.weighted_logs() / options.noise;
  double best = 0.0;
  double least_surprise = std::numeric_limits<double>::infinity();
  for (const double distance : options.distances) {
    // The score is -2 log likelihood of normal rows with covariance 1 + W W', up to a constant.
    MatrixXd wide = slopes;
    for (std::size_t i = 0; i < problem.size(); ++i) {
      wide.col(static_cast<Eigen::Index>(i)) *= in_quadrature(problem.spread(i), distance);
    }
    const MatrixXd inner = MatrixXd::Identity(wide.cols(), wide.cols()) + wide.transpose() * wide;
    const Eigen::LDLT<MatrixXd> solver(inner);
    const VectorXd seen = wide.transpose() * rows;
    double surprise = rows.squaredNorm() - seen.dot(solver.solve(seen));
    for (const double pivot : solver.vectorD()) {
      surprise += math::log(pivot);
    }
    if (surprise < least_surprise) {
      least_surprise = surprise;
      best = distance;
    }
  }
  return best;
}

/// With few rows, keeps only the parameters that they determine; all others return to their starts. Returns the names
/// of the dropped parameters. The least determined parameter is dropped first, so that one of two parameters that the
/// rows determine only in combination (a base latency and a step latency) is kept.
std::vector<std::string> drop_undecided(PriorProblem& problem, const PriorFitOptions& options) {
  std::vector<std::string> dropped;
  while (problem.size() > 0) {
    // If the noise is known, rows of a very different machine, which no values near the base fit, still move the
    // parameters on which they depend.
    const std::vector<double> values = problem.fit().values();
    const std::vector<double> errors = problem.errors(values, options.is_noise_known ? options.noise : problem.noise());
    problem.put_starts();
    std::size_t worst = 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      worst = errors[i] / problem.spread(i) > errors[worst] / problem.spread(worst) ? i : worst;
    }
    if (errors[worst] < options.decided * problem.spread(worst)) {
      break;
    }
    dropped.push_back(problem.name(worst));
    problem.drop(worst);
  }
  return dropped;
}

}  // namespace

PriorFit prior_fit(std::vector<PriorParameter> parameters, const PriorRows& rows, const PriorFitOptions& options) {
  check(rows.count > 0, "a fit has rows");
  PriorProblem problem(std::move(parameters), rows, options);
  problem.drop_without_effect();
  PriorFit result;
  if (!options.distances.empty()) {
    result.distance = likeliest_distance(problem, options);
    problem.widen(result.distance);
  }
  if (options.has_few) {
    result.left = drop_undecided(problem, options);
  }
  if (problem.size() > 0) {
    RobustFit fitted = problem.fit();
    result.parameters = std::move(fitted.parameters);
    result.converged = fitted.converged;
  }
  result.places = problem.free();
  result.spread = problem.spread_of_rows();
  if (problem.size() == 0) {
    return result;
  }
  std::vector<double> values;
  for (const FittedParameter& parameter : result.parameters) {
    values.push_back(parameter.value);
  }
  const std::vector<double> errors =
      options.has_few ? problem.errors(values, problem.noise()) : problem.ridge_errors(values, result.spread);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    FittedParameter& parameter = result.parameters[i];
    if (options.has_few) {
      // The slope of a parameter that stopped at a limit does not show how far it would have moved.
      parameter.standard_error = parameter.undecided ? std::max(errors[i], problem.spread(i)) : errors[i];
    } else {
      // robust_fit counts the prior's residuals, which are zero at the start, as rows that agree.
      parameter.standard_error = std::max(parameter.standard_error, errors[i]);
    }
  }
  return result;
}

}  // namespace commfuse
