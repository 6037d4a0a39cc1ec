// SPDX-License-Identifier: Apache-2.0
// Reliability of the stated errors: how often intervals contain the measured time, and how often a likely result came
// true.
//
//   an interval of level p is  predicted x exp(+- z(p) x standard error)      z(p): see model/analysis/error_tail.h
//   coverage of level p        share of the rows whose measured time is inside the interval
//   sampling band              1.96 x sqrt(design effect x p (1 - p) / n)
//   Brier score                mean of (probability - outcome)^2              0.25: a coin toss
//
// Rows of one shape have correlated errors, so n rows carry less information than n independent rows. The design effect
// is the variance of the share with rows grouped by shape, divided by its variance with independent rows (Kish, "Survey
// Sampling", 1965, 5.4 and 8.2), and at least 1. If all rows have the same outcome, or the same shape, the design
// effect takes its largest value, that of shapes whose rows are all equal.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/fit_scope.h"

namespace commfuse {

/// Numbers that are equal for rows with correlated errors, such as n and k of a GEMM.
using ShapeKey = std::array<std::int64_t, 3>;

/// One measured time and the standard error of its prediction.
struct CheckedTime {
  double distance = 0.0;  ///< ln(measured / predicted)
  double error = 0.0;     ///< one standard error of ln(predicted), as predictions state it
  ShapeKey shape{};
};

/// Rows that no fit has seen, of one kind of op on one machine.
struct CheckedKind {
  std::string kind;     ///< kind of op, such as "GEMM bf16"
  std::string machine;  ///< name of the hardware file
  bool fitted = false;  ///< A fit of this machine read other rows of the same table.
  std::vector<CheckedTime> times;
};

/// A row of a table that a fit read or held out.
struct FitRow {
  double distance = 0.0;    ///< ln(measured / predicted)
  double parameters = 0.0;  ///< part of the prediction's standard error that comes from parameters
  ShapeKey shape{};
  bool held_out = false;
  Limit limit = Limit::compute;
};

/// Rows that belong to one residual of a machine's file.
struct FitRows {
  std::string machine;
  std::string key;  ///< key in the file, such as "accelerator.matrix_units.bf16.fit.residual"
  double residual = 0.0;
  std::vector<FitRow> rows;
  ByLimit by_limit = ones_by_limit;
};

/// Two ways to do the same work, both measured.
struct JudgedPair {
  double probability = 0.5;  ///< probability, at least one half, that the way predicted to be faster is indeed faster
  bool came_true = false;
  ShapeKey shape{};
};

struct JudgedPairs {
  std::string ways;  ///< the compared ways, such as "whole or in slices of rows"
  std::string machine;
  std::vector<JudgedPair> pairs;
};

/// One value of a published distribution, as a factor: 1.013 is 1.3% above the median.
struct Observation {
  std::string what;  ///< name of the value, such as "inter-node send/recv max over median (3 runs): p90"
  std::string machine;
  double measured = 1.0;
  double predicted = 1.0;
};

/// An observed share, and how far it may be from the true share by chance (95%).
struct ObservedShare {
  double share = 0.0;
  double band = 0.0;
};

inline constexpr std::array<double, 4> coverage_levels{0.50, 0.68, 0.90, 0.95};

struct Coverage {
  std::int64_t n = 0;
  std::int64_t shapes = 0;
  std::array<ObservedShare, coverage_levels.size()> at{};  ///< by level
  double median_error = 0.0;                               ///< median of CheckedTime::error
};

/// Returns the coverage; all 0 without times.
Coverage coverage_of(std::vector<CheckedTime> times);

/// Returns the largest deviation of a share from its level beyond chance: the largest |share - level| - band, at least
/// 0.
double beyond_chance(const Coverage& coverage);

/// Number of rows that a new residual needs. A fit adapts to its rows: if there are fewer, they are closer to the fit
/// than unseen rows, and so do not determine its residual. The fits of links have 25 parameters at most; 150 rows of
/// such a fit are 9% closer to it than unseen rows.
inline constexpr std::int64_t least_rows_for_residual = 150;

/// A limit (Limit) with fewer rows keeps the residual of all rows.
inline constexpr std::int64_t least_rows_for_limit = 60;

/// Smallest residual: repeated runs on one node differ by this much.
inline constexpr double least_residual = 0.005;

/// A residual computed from the rows that the fit read, and its effect on the held-out rows.
struct NewResidual {
  std::int64_t read = 0;
  std::array<std::int64_t, all_limits.size()> read_by_limit{};
  std::int64_t held_out = 0;
  double residual = 0.0;
  ByLimit by_limit = ones_by_limit;
  bool enough = false;  ///< At least least_rows_for_residual rows were read.
  Coverage now;         ///< coverage of the held-out rows, with the residuals of the file
  Coverage then;        ///< coverage of the same rows, with the new residuals
};

/// Returns a residual by split conformal prediction (Lei et al., "Distribution-Free Predictive Inference for
/// Regression", JASA 113, 2018) on distances scaled by their errors: the smallest residual with which 68% intervals
/// contain ceil(0.68 (n + 1)) of the n rows that the fit read. The factor of a limit is the residual of the rows with
/// that limit, computed in this way, divided by the residual of all rows. Held-out rows are not used. Residuals are
/// limited to the range from least_residual to 1. If the fit read no rows, the residual is unchanged.
NewResidual new_residual(const FitRows& fit);

/// Pairs with a probability from `from` to below `to`; the last bin also contains 1.
struct ReliabilityBin {
  double from = 0.5;
  double to = 1.0;
  std::int64_t n = 0;
  double said = 0.0;  ///< mean probability
  ObservedShare observed;
};

inline constexpr std::array<double, 8> probability_edges{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0};

struct Reliability {
  std::int64_t n = 0;
  double brier = 0.0;
  std::array<ReliabilityBin, probability_edges.size() - 1> bins{};
};

Reliability reliability_of(std::span<const JudgedPair> pairs);

}  // namespace commfuse
