// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of a cost formula to measured times, by least squares that are robust to a few bad rows.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace commfuse {

/// Standard deviation divided by the median absolute deviation, for normal errors.
inline constexpr double normal_spread = 1.4826;

/// A positive parameter of a formula, with the bounds of the search. The fit moves its logarithm: a step is a share of
/// the value, and no value leaves its bounds. Requires 0 < lower <= start <= upper; lower == upper fixes it.
struct FitParameter {
  std::string name;
  double start = 1.0;
  double lower = 1e-12;
  double upper = 1e12;
};

struct FitOptions {
  /// Only the sign of residuals beyond this multiple of their spread counts (Huber); 1.345 keeps 95% of the efficiency
  /// if errors are normal. Infinity means plain least squares.
  double huber = 1.345;
  double spread = 0.0;  ///< spread of the residuals if known; 0: estimated from the residuals, like RobustFit::spread
  int max_iterations = 200;
  double tolerance = 1e-9;        ///< Stop when a step improves the objective by less than this share.
  double difference_step = 1e-4;  ///< step of a logarithm, for the derivatives
  /// Group of each residual: rows of a group have correlated errors; empty: every row is its own group.
  std::vector<int> groups = {};
};

/// Writes one residual per row for these values, which are in the order of the parameters. Use log(predicted /
/// measured), so that short and long times have equal weight. Residuals must be finite everywhere inside the bounds.
using Residuals = std::function<void(std::span<const double> values, std::span<double> residuals)>;

struct FittedParameter {
  std::string name;
  double value = 0.0;
  double standard_error = 0.0;  ///< relative to value; 0 if it was fixed or is undecided
  bool undecided = false;       ///< ended on a bound beyond which the data would push it, or changes no residual
  double start = 0.0;           ///< start of the search
  /// True for a rate at the physical rate of the wires, beyond which the data would push it.
  bool at_capacity = false;
};

struct RobustFit {
  std::vector<FittedParameter> parameters;  ///< in the given order
  std::vector<double> residuals;            ///< at the fitted values
  double spread = 0.0;  ///< normal_spread x the median of |residual|: a standard deviation that ignores outliers
  double loss = 0.0;    ///< Huber's loss at the fitted values; comparable between fits with equal FitOptions::spread
  int iterations = 0;
  bool converged = false;

  std::vector<double> values() const;
};

/// Fits by Levenberg-Marquardt on iteratively reweighted residuals (Huber, "Robust Statistics", 1981, chapter 7), with
/// the Jacobian by central differences. Standard errors come from the sandwich (J' D J)^-1 (sum over groups of s s')
/// (J' D J)^-1, where s is the group's summed influence; if every row is its own group, these are White's errors
/// (Econometrica 48, 1980). Requires at least one parameter and more residuals than parameters. Deterministic.
RobustFit robust_fit(std::span<const FitParameter> parameters, std::size_t rows, const Residuals& residuals,
                     const FitOptions& options = {});

/// Returns the quantile of `values` at `share`, by linear interpolation; 0.5 is the median. Requires at least one value
/// and 0 <= share <= 1.
double quantile(std::vector<double> values, double share);

}  // namespace commfuse
