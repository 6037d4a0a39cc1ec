// SPDX-License-Identifier: Apache-2.0
// Least squares that starts from a machine's parameters and moves them only as far as the rows require: ridge
// regression (Hoerl and Kennard, Technometrics 12, 1970) on logarithms, which is Bayes' rule with a normal prior. So
// few rows can fit formulas with many parameters.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/fit/robust_fit.h"

namespace commfuse {

/// Error of a row that remains after a good fit.
inline constexpr double residual_of_a_row = 0.05;

/// A parameter before any row is seen. Requires 0 < lower <= start <= upper and spread > 0.
struct PriorParameter {
  std::string name;
  double start = 1.0;  ///< value of the base
  double lower = 1e-12;
  double upper = 1e12;
  double spread = 0.7;  ///< standard deviation of its logarithm around the start
};

/// Rows as functions of the parameters. The callables use the latest values.
struct PriorRows {
  std::size_t count = 0;
  std::function<void(std::size_t parameter, double value)> put;
  std::function<double(std::size_t row)> log_ratio;  ///< ln(predicted / measured)
  std::function<double(std::size_t row)> weight;     ///< 1 counts in full
};

struct PriorFitOptions {
  /// If true, each parameter keeps its start unless the rows narrow its prior to `decided` of its spread, and errors
  /// are those of Bayes' rule; a parameter that stops at its limit (it is `undecided`) keeps at least the prior's
  /// error. If false, all parameters that some row depends on are fitted, and errors are those of robust_fit.
  bool has_few = true;
  double decided = 0.5;
  double noise = residual_of_a_row;  ///< standard deviation of a row: the residual of the formula
  double most_spreads = 10.0;        ///< a parameter moves from its start by at most this many of its spreads
  /// If true, `noise` defines outliers. Otherwise the scatter of the residuals does, which needs more rows than
  /// parameters.
  bool is_noise_known = false;
  /// Possible distances of the machine from the base in all parameters alike, in addition to each one's spread; the
  /// rows choose one of these. Empty: only the parameters' spreads count.
  std::vector<double> distances = {};
  FitOptions fit = {};
};

struct PriorFit {
  std::vector<FittedParameter> parameters;  ///< parameters that the rows move, in the given order
  std::vector<std::size_t> places;          ///< place of each in the given order
  std::vector<std::string> left;  ///< names of those that rows depend on without deciding them; they stay as they were
  double spread = 0.0;            ///< robust spread of the rows' logarithms
  double distance = 0.0;          ///< the one that the rows chose
  bool converged = false;
};

/// Sets the fitted values, and the starts of all others. A parameter that no row depends on is in neither list.
/// Requires a row. Deterministic.
PriorFit prior_fit(std::vector<PriorParameter> parameters, const PriorRows& rows, const PriorFitOptions& options);

}  // namespace commfuse
