// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of a link to measured exchanges and collectives. The fitted formulas are the formulas of prices
// (model/cost/communication.h), so that a fit and a prediction always agree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/fit/robust_fit.h"
#include "model/hardware/link.h"
#include "model/program/program.h"

namespace commfuse {

/// One measured collective; `total` is the nccl-tests size.
struct CollectiveRow {
  CollectiveKind kind = CollectiveKind::all_gather;
  int ranks = 2;
  int nodes = 1;
  Bytes total;
  double time_us = 0.0;
  double rates = 1.0;  ///< rate of the group's wires relative to the wires of the whole node (with_rates)
};

/// One measured exchange, with both directions busy.
struct PeerRow {
  Bytes bytes;
  double time_us = 0.0;
};

struct LinkFitOptions {
  std::string source;  ///< source of the fitted parameters: a table's file name
  /// Standard deviation of the logarithm of a parameter around its start; at this distance, the prior weighs as much as
  /// one row. Parameters that the rows cannot determine stay near their start.
  double prior_spread = 0.7;
  /// Rows below this size have weight `small_weight`, because hosts and clocks dominate their times.
  Bytes small_below{65'536};
  double small_weight = 0.3;
  /// Upper bound on fitted rates of the wires: their physical rate (Link::capacity), rounded for a file that is written
  /// (writable_up_to in link_yaml.h).
  BytesPerSecond physical_rate = unlimited;
  /// With fewer rows, each parameter keeps its value unless the rows halve the spread of its prior, because few rows
  /// determine few parameters.
  std::size_t few_rows = 40;
  FitOptions fit = {};
};

/// Quality of a fit.
struct LinkFitReport {
  std::vector<FittedParameter> parameters;  ///< parameters on which some row depends, by their name in a file
  std::vector<double> errors;               ///< per row: predicted / measured - 1
  std::vector<std::string> left;            ///< parameters that few rows cannot determine; their values are unchanged
  double spread = 0.0;                      ///< robust spread of ln(predicted / measured)
  bool converged = false;
};

struct CollectiveFit {
  CollectiveParameters parameters;  ///< parameters on which no row depends are unchanged
  LinkFitReport report;
};

/// Fits every parameter of `start` that prices one of the rows, except the sizes at which protocols change and the
/// kernels of serving frameworks. Parameters that the rows cannot determine stay near the prior (ridge; Hoerl and
/// Kennard, 1970), so few rows are enough; with few rows, they keep their values. Requires at least one row.
CollectiveFit fit_collectives(const CollectiveParameters& start, std::span<const CollectiveRow> rows,
                              const LinkFitOptions& options);

struct PeerFit {
  PeerParameters parameters;
  LinkFitReport report;
};

/// Fits latency and rate. Also fits latency and rate of small messages, with the power of two up to which messages are
/// small, if that reduces the errors by at least a tenth; with fewer than twelve rows, fits only one latency and rate.
/// The aggregate rate follows the rate if they were equal, and is never below it. Requires at least one row.
PeerFit fit_peer(const PeerParameters& start, std::span<const PeerRow> rows, const LinkFitOptions& options);

/// Returns the price of one row, in microseconds.
double collective_microseconds(const CollectiveParameters& parameters, const CollectiveRow& row);

}  // namespace commfuse
