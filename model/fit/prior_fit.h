// SPDX-License-Identifier: Apache-2.0
// Least squares that starts from a machine's parameters and leaves them only as far as rows ask for: ridge regression
// (Hoerl and Kennard, Technometrics 12, 1970) on logarithms, which is Bayes' rule with a normal prior. So few rows fit
// formulas of many parameters.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/fit/robust_fit.h"

namespace commfuse {

/// What the rows of a good fit still err by.
inline constexpr double residual_of_a_row = 0.05;

/// A parameter before any row is seen. Requires 0 < lower <= start <= upper and spread > 0.
struct PriorParameter {
  std::string name;
  double start = 1.0;  ///< The base's value.
  double lower = 1e-12;
  double upper = 1e12;
  double spread = 0.7;  ///< How far it may be from its start: the standard deviation of its logarithm.
};

/// What the rows say of values. The callables see the values that were put last.
struct PriorRows {
  std::size_t count = 0;
  std::function<void(std::size_t parameter, double value)> put;
  std::function<double(std::size_t row)> log_ratio;  ///< Of predicted over measured.
  std::function<double(std::size_t row)> weight;     ///< 1 counts in full.
};

struct PriorFitOptions {
  /// Each parameter keeps its start unless the rows narrow its prior to `decided` of its spread, and errors are those
  /// of Bayes' rule, no less than the prior's of one that stops at its limit (it is `undecided`). Otherwise all that
  /// some row depends on are fitted, and errors are those of robust_fit.
  bool has_few = true;
  double decided = 0.5;
  double noise = residual_of_a_row;  ///< Standard deviation of a row: what the formula leaves.
  double most_spreads = 10.0;        ///< No parameter goes further from its start than so many of its spreads.
  /// Outliers are told by `noise`. Otherwise by how far the residuals scatter, which takes more rows than parameters.
  bool is_noise_known = false;
  /// How far the machine may be from the base in all parameters alike, beside each one's spread; the rows choose one of
  /// these. Empty: the parameters' spreads say all.
  std::vector<double> distances = {};
  FitOptions fit = {};
};

struct PriorFit {
  std::vector<FittedParameter> parameters;  ///< Those that the rows move, in the order given.
  std::vector<std::size_t> places;          ///< Where each stands in the order given.
  std::vector<std::string> left;            ///< Names of those that rows depend on without deciding them: as they were.
  double spread = 0.0;                      ///< Of the rows' logarithms, robust.
  double distance = 0.0;                    ///< The one that the rows chose.
  bool converged = false;
};

/// Puts the fitted values, and the starts of all others. A parameter that no row depends on is in neither list.
/// Requires a row. Deterministic.
PriorFit prior_fit(std::vector<PriorParameter> parameters, const PriorRows& rows, const PriorFitOptions& options);

}  // namespace commfuse
