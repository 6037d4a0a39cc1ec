// SPDX-License-Identifier: Apache-2.0
// Least squares that starts from a machine's parameters and moves them only as far as the rows require: ridge
// regression (Hoerl and Kennard, Technometrics 12, 1970) on logarithms, which equals Bayes' rule with a normal prior. A
// formula with many parameters can thus be fitted to a small number of rows.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/fit/robust_fit.h"

namespace commfuse {

/// Relative error that remains for a row after a good fit.
inline constexpr double residual_of_a_row = 0.05;

/// The prior of a parameter, before any row is used. Requires 0 < lower <= start <= upper and spread > 0.
struct PriorParameter {
  std::string name;
  double start = 1.0;  ///< value in the machine from which the fit starts (the base)
  double lower = 1e-12;
  double upper = 1e12;
  double spread = 0.7;  ///< standard deviation of its logarithm around the start
};

/// Rows as functions of the parameters. The callables use the latest values.
struct PriorRows {
  std::size_t count = 0;
  std::function<void(std::size_t parameter, double value)> put;
  std::function<double(std::size_t row)> log_ratio;  ///< ln(predicted / measured)
  std::function<double(std::size_t row)> weight;     ///< 1 for full weight
};

struct PriorFitOptions {
  /// If true, a parameter keeps its start unless the rows reduce its error below `decided` times its spread. Errors
  /// follow from Bayes' rule, but the error of a parameter that stops at a limit (`undecided`) is at least its spread.
  /// If false, all parameters on which some row depends are fitted, and errors come from robust_fit, but are at least
  /// those of ridge regression: the error of a parameter that rows hardly determine stays near its spread.
  bool has_few = true;
  double decided = 0.5;
  double noise = residual_of_a_row;  ///< standard deviation of a row around the formula
  double max_spreads = 10.0;         ///< largest move of a parameter from its start, in spreads
  /// If true, `noise` defines outliers. Otherwise the scatter of the residuals defines them, which needs more rows than
  /// parameters.
  bool is_noise_known = false;
  /// Candidates for the distance between the machine and the base. The rows choose the likeliest, which is added in
  /// quadrature to the spread of every parameter. Empty: only the parameters' spreads are used.
  std::vector<double> distances = {};
  FitOptions fit = {};
};

struct PriorFit {
  std::vector<FittedParameter> parameters;  ///< parameters that the rows move, in the given order
  std::vector<std::size_t> places;          ///< index of each fitted parameter in the given list
  std::vector<std::string> left;  ///< parameters that affect rows but are not determined; they keep their start
  double spread = 0.0;            ///< robust spread of ln(predicted / measured)
  double distance = 0.0;          ///< chosen from PriorFitOptions::distances
  bool converged = false;
};

/// Fits the parameters. Afterwards, the rows have the fitted values, and the start of every other parameter. A
/// parameter on which no row depends is neither in `parameters` nor in `left`. Requires at least one row.
/// Deterministic.
PriorFit prior_fit(std::vector<PriorParameter> parameters, const PriorRows& rows, const PriorFitOptions& options);

}  // namespace commfuse
