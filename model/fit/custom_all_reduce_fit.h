// SPDX-License-Identifier: Apache-2.0
// Fits the all-reduce kernels of a serving framework (model/cost/custom_all_reduce.h) to measured times.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "model/fit/robust_fit.h"
#include "model/hardware/link.h"
#include "model/units.h"

namespace commfuse {

/// One measured all-reduce inside a node, launched as a node of a graph.
struct CustomAllReduceRow {
  int ranks = 2;
  Bytes total;
  double time_us = 0.0;
};

/// Rows that a fit needs: two per parameter.
inline constexpr std::size_t least_custom_all_reduces = 12;

struct CustomAllReduceFit {
  CustomAllReduce parameters;
  std::vector<FittedParameter> fitted_parameters;  ///< durations in microseconds, rates in bytes per second
  double spread = 0.0;                             ///< robust spread of ln(predicted / measured)
  bool converged = false;
};

/// Fits the latency, step and rate of one shot and of two shots from the rows alone, so that the values do not depend
/// on the file that is extended. The search starts at several points, because a row may belong to either kernel; the
/// fit with the smallest loss is returned. Two shots pass one more barrier than one shot and read every rank twice, so
/// their latency and step are no smaller than those of one shot. Rates are at most `capacity`, the physical rate of the
/// wires. Errors are at most 1, the error of a parameter on which no row depends. `up_to` is copied. Requires at least
/// `least_custom_all_reduces` rows, each with 2 ranks or more and a time above 0, and a finite capacity.
CustomAllReduceFit fit_custom_all_reduce(std::span<const CustomAllReduceRow> rows, const Parameter<Bytes>& up_to,
                                         BytesPerSecond capacity, const std::string& source);

}  // namespace commfuse
