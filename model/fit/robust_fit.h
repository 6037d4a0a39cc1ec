// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of a cost formula to measured times: least squares that a few bad rows cannot bend.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace commfuse {

/// A positive parameter of a formula, and where to look for it. The fit moves its logarithm: a step is a share of the
/// value, and no value leaves its bounds. Requires 0 < lower <= start <= upper; lower == upper holds it fast.
struct FitParameter {
  std::string name;
  double start = 1.0;
  double lower = 1e-12;
  double upper = 1e12;
};

struct FitOptions {
  /// Residuals beyond this many times their spread pull with their sign only (Huber); 1.345 keeps 95 % of the
  /// efficiency where the errors are normal. Infinity gives plain least squares.
  double huber = 1.345;
  double spread = 0.0;  ///< Of the residuals, where it is known; 0: it is taken from them, as RobustFit::spread.
  int most_iterations = 200;
  double tolerance = 1e-9;        ///< Stop when a step improves the objective by less than this share of it.
  double difference_step = 1e-4;  ///< Of a logarithm, for the derivatives.
  std::vector<int> groups = {};   ///< One a residual: rows of a group err alike. Empty: every row is its own group.
};

/// Fills one residual a row for these values, in the order of the parameters. Best log(predicted / measured), so that a
/// microsecond and a second count alike. Must be finite everywhere inside the bounds.
using Residuals = std::function<void(std::span<const double> values, std::span<double> residuals)>;

struct FittedParameter {
  std::string name;
  double value = 0.0;
  double standard_error = 0.0;  ///< Relative to value; 0 where it was held fast or ended on a bound.
  bool undecided = false;       ///< Ended on a bound that the data would push it through, or changes no residual.
  double start = 0.0;           ///< Where it was looked for first.
  bool at_capacity = false;     ///< Of a rate: on what the wires are built for, which the data would push it through.
};

struct RobustFit {
  std::vector<FittedParameter> parameters;  ///< In the order given.
  std::vector<double> residuals;            ///< At the fitted values.
  double spread = 0.0;  ///< 1.4826 x the median of |residual|: a standard deviation that outliers leave alone.
  int iterations = 0;
  bool converged = false;

  std::vector<double> values() const;
};

/// Levenberg-Marquardt on iteratively reweighted residuals (Huber, "Robust Statistics", 1981, chapter 7), Jacobian by
/// central differences. Standard errors: the sandwich (J' D J)^-1 (sum over groups of s s') (J' D J)^-1, where s is the
/// group's summed influence; with every row its own group, White's errors (Econometrica 48, 1980). Requires at least
/// one parameter and more residuals than parameters. Deterministic.
RobustFit robust_fit(std::span<const FitParameter> parameters, std::size_t rows, const Residuals& residuals,
                     const FitOptions& options = {});

/// The value at a share of the ordered list, by linear interpolation; 0.5 is the median. Requires a value and
/// 0 <= share <= 1.
double quantile(std::vector<double> values, double share);

}  // namespace commfuse
