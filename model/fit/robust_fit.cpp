// SPDX-License-Identifier: Apache-2.0
#include "model/fit/robust_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double least_spread = 1e-12;  // in an exact fit, rounding must not look like outliers
constexpr double first_damping = 1e-3;
constexpr double max_damping = 1e12;

double spread_of(const VectorXd& residuals) {
  std::vector<double> sizes(static_cast<std::size_t>(residuals.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] = std::abs(residuals[static_cast<Eigen::Index>(i)]);
  }
  return std::max(least_spread, normal_spread * quantile(std::move(sizes), 0.5));
}

/// Returns the size above which only the sign of a residual counts.
double threshold_of(const VectorXd& residuals, const FitOptions& options) {
  return options.huber * (options.spread > 0.0 ? options.spread : spread_of(residuals));
}

/// Returns Huber's loss: half the square of a residual up to `threshold`, and the tangent beyond.
double loss(const VectorXd& residuals, double threshold) {
  double sum = 0.0;
  for (const double residual : residuals) {
    const double size = std::abs(residual);
    sum += size <= threshold ? 0.5 * size * size : threshold * (size - 0.5 * threshold);
  }
  return sum;
}

/// The problem in logarithms: bounds, values, derivatives.
class RobustProblem {
 public:
  RobustProblem(std::span<const FitParameter> parameters, std::size_t rows, const Residuals& residuals, double step)
      : parameters_(parameters), rows_(static_cast<Eigen::Index>(rows)), residuals_(residuals), step_(step) {}

  Eigen::Index size() const { return static_cast<Eigen::Index>(parameters_.size()); }
  Eigen::Index rows() const { return rows_; }
  double lower(Eigen::Index i) const { return math::log(parameters_[static_cast<std::size_t>(i)].lower); }
  double upper(Eigen::Index i) const { return math::log(parameters_[static_cast<std::size_t>(i)].upper); }

  VectorXd start() const {
    VectorXd logs(size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      logs[i] = math::log(parameters_[static_cast<std::size_t>(i)].start);
    }
    return logs;
  }

  VectorXd inside(VectorXd logs) const {
    for (Eigen::Index i = 0; i < size(); ++i) {
      logs[i] = std::clamp(logs[i], lower(i), upper(i));
    }
    return logs;
  }

  VectorXd residuals(const VectorXd& logs) const {
    const VectorXd values = logs.unaryExpr([](double value) { return math::exp(value); });
    VectorXd out(rows_);
    residuals_({values.data(), parameters_.size()}, {out.data(), static_cast<std::size_t>(rows_)});
    check(out.allFinite(), "residuals are finite inside the bounds");
    return out;
  }

  /// Returns the derivatives. Steps stay inside the bounds; a fixed parameter has a column of zeros.
  MatrixXd jacobian(const VectorXd& logs) const {
    MatrixXd slopes = MatrixXd::Zero(rows_, size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      VectorXd above = logs;
      VectorXd below = logs;
      above[i] = std::min(upper(i), logs[i] + step_);
      below[i] = std::max(lower(i), logs[i] - step_);
      if (above[i] > below[i]) {
        slopes.col(i) = (residuals(above) - residuals(below)) / (above[i] - below[i]);
      }
    }
    return slopes;
  }

 private:
  std::span<const FitParameter> parameters_;
  Eigen::Index rows_;
  const Residuals& residuals_;
  double step_;
};

VectorXd weights_of(const VectorXd& residuals, double threshold) {
  return residuals.unaryExpr(
      [threshold](double residual) { return std::abs(residual) <= threshold ? 1.0 : threshold / std::abs(residual); });
}

/// Finds parameters that are on a bound beyond which the objective would push them, and parameters without effect.
std::vector<bool> stuck_of(const RobustProblem& problem, const VectorXd& logs, const MatrixXd& slopes,
                           const VectorXd& gradient) {
  std::vector<bool> stuck(static_cast<std::size_t>(problem.size()));
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    stuck[static_cast<std::size_t>(i)] = (logs[i] <= problem.lower(i) && gradient[i] >= 0.0) ||
                                         (logs[i] >= problem.upper(i) && gradient[i] <= 0.0) ||
                                         slopes.col(i).isZero(0.0);
  }
  return stuck;
}

/// Replaces rows and columns of stuck parameters with rows and columns of the identity matrix, so that they get no step
/// and no error.
void exclude(MatrixXd& normal, VectorXd& gradient, const std::vector<bool>& stuck) {
  for (Eigen::Index i = 0; i < normal.rows(); ++i) {
    if (stuck[static_cast<std::size_t>(i)]) {
      normal.row(i).setZero();
      normal.col(i).setZero();
      normal(i, i) = 1.0;
      gradient[i] = 0.0;
    }
  }
}

struct State {
  VectorXd logs;
  VectorXd residuals;
  std::vector<bool> stuck;
  int iterations = 0;
  bool converged = false;
};

/// Makes one accepted step of Levenberg-Marquardt at a fixed threshold. Returns the relative decrease of the loss, or 0
/// if no step reduces it.
double improve(const RobustProblem& problem, double threshold, double& damping, State& state) {
  const MatrixXd slopes = problem.jacobian(state.logs);
  const VectorXd weights = weights_of(state.residuals, threshold);
  MatrixXd normal = slopes.transpose() * weights.asDiagonal() * slopes;
  VectorXd gradient = slopes.transpose() * weights.cwiseProduct(state.residuals);
  state.stuck = stuck_of(problem, state.logs, slopes, gradient);
  exclude(normal, gradient, state.stuck);
  const double before = loss(state.residuals, threshold);
  while (damping < max_damping) {
    MatrixXd damped = normal;
    damped.diagonal() *= 1.0 + damping;
    const VectorXd logs = problem.inside(state.logs - damped.ldlt().solve(gradient));
    const VectorXd residuals = problem.residuals(logs);
    const double after = loss(residuals, threshold);
    if (after < before) {
      state.logs = logs;
      state.residuals = residuals;
      damping = std::max(damping / 8.0, 1e-12);
      return (before - after) / before;
    }
    damping *= 4.0;
  }
  damping = first_damping;
  return 0.0;
}

State descend(const RobustProblem& problem, const FitOptions& options) {
  State state{.logs = problem.inside(problem.start())};
  state.residuals = problem.residuals(state.logs);
  double damping = first_damping;
  for (; state.iterations < options.max_iterations && !state.converged; ++state.iterations) {
    const double threshold = threshold_of(state.residuals, options);
    state.converged = improve(problem, threshold, damping, state) < options.tolerance;
  }
  return state;
}

/// Returns the sum over groups of s s', where s is the sum of slope x clipped residual over the rows of a group.
MatrixXd influence(const MatrixXd& slopes, const VectorXd& clipped, const std::vector<int>& groups) {
  if (groups.empty()) {
    return slopes.transpose() * clipped.cwiseAbs2().asDiagonal() * slopes;
  }
  std::map<int, VectorXd> sums;
  for (Eigen::Index i = 0; i < slopes.rows(); ++i) {
    const auto [at, is_new] = sums.try_emplace(groups[static_cast<std::size_t>(i)], VectorXd::Zero(slopes.cols()));
    at->second += clipped[i] * slopes.row(i).transpose();
  }
  MatrixXd total = MatrixXd::Zero(slopes.cols(), slopes.cols());
  for (const auto& [group, sum] : sums) {
    total += sum * sum.transpose();
  }
  return total;
}

/// Returns standard errors of the logarithms, which are relative to the values. Their squares contain the factor rows /
/// (rows - parameters), which matters when there are few rows.
VectorXd standard_errors(const RobustProblem& problem, const State& state, const FitOptions& options) {
  const double threshold = threshold_of(state.residuals, options);
  const MatrixXd slopes = problem.jacobian(state.logs);
  const VectorXd inlier =
      state.residuals.unaryExpr([threshold](double residual) { return std::abs(residual) <= threshold ? 1.0 : 0.0; });
  const VectorXd clipped = weights_of(state.residuals, threshold).cwiseProduct(state.residuals);
  MatrixXd bread = slopes.transpose() * inlier.asDiagonal() * slopes;
  VectorXd unused = VectorXd::Zero(problem.size());
  exclude(bread, unused, state.stuck);
  const MatrixXd inverse = bread.ldlt().solve(MatrixXd::Identity(bread.rows(), bread.cols()));
  MatrixXd meat = influence(slopes, clipped, options.groups);
  const auto rows = static_cast<double>(problem.rows());
  const MatrixXd covariance = inverse * meat * inverse * (rows / (rows - static_cast<double>(problem.size())));
  return covariance.diagonal().cwiseMax(0.0).cwiseSqrt();
}

void require_sound(std::span<const FitParameter> parameters, std::size_t rows, const FitOptions& options) {
  check(!parameters.empty() && rows > parameters.size(), "a fit has more rows than parameters, and a parameter");
  check(options.groups.empty() || options.groups.size() == rows, "a fit has one group per row, or none");
  for (const FitParameter& parameter : parameters) {
    check(0.0 < parameter.lower && parameter.lower <= parameter.start && parameter.start <= parameter.upper &&
              std::isfinite(parameter.upper),
          "a parameter is positive and starts inside its bounds");
  }
}

}  // namespace

std::vector<double> RobustFit::values() const {
  std::vector<double> values;
  values.reserve(parameters.size());
  for (const FittedParameter& parameter : parameters) {
    values.push_back(parameter.value);
  }
  return values;
}

RobustFit robust_fit(std::span<const FitParameter> parameters, std::size_t rows, const Residuals& residuals,
                     const FitOptions& options) {
  require_sound(parameters, rows, options);
  const RobustProblem problem(parameters, rows, residuals, options.difference_step);
  const State state = descend(problem, options);
  const VectorXd errors = standard_errors(problem, state, options);
  RobustFit fit{.residuals = {state.residuals.begin(), state.residuals.end()},
                .spread = spread_of(state.residuals),
                .loss = loss(state.residuals, threshold_of(state.residuals, options)),
                .iterations = state.iterations,
                .converged = state.converged};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const bool is_free = parameters[i].lower < parameters[i].upper;
    const bool stuck = state.stuck[i];
    const double value = std::clamp(math::exp(state.logs[at]), parameters[i].lower, parameters[i].upper);
    fit.parameters.push_back(
        {parameters[i].name, value, stuck ? 0.0 : errors[at], is_free && stuck, parameters[i].start});
  }
  return fit;
}

double quantile(std::vector<double> values, double share) {
  check(!values.empty() && share >= 0.0 && share <= 1.0, "a quantile needs values and a share from 0 to 1");
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace commfuse
