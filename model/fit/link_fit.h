// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of a link to measured exchanges and collectives. The fitted formulas are those that price
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

/// One measured collective; `total` as nccl-tests counts it.
struct CollectiveRow {
  CollectiveKind kind = CollectiveKind::all_gather;
  int ranks = 2;
  int nodes = 1;
  Bytes total;
  double time_us = 0.0;
  double rates = 1.0;  ///< rate of the group's wires relative to the whole node's (with_rates)
};

/// One measured exchange, with both directions busy.
struct PeerRow {
  Bytes bytes;
  double time_us = 0.0;
};

struct LinkFitOptions {
  std::string source;  ///< source of the fitted parameters: a table's file name
  /// Standard deviation of the logarithm of a parameter around its start at which the prior counts as much as one row;
  /// parameters that rows leave open stay near it.
  double prior_spread = 0.7;
  /// Rows below this size count as `small_weight` of a row, because hosts and clocks dominate their times.
  Bytes small_below{65'536};
  double small_weight = 0.3;
  /// Upper bound on fitted rates of the wires: their physical rate (Link::capacity).
  BytesPerSecond physical_rate = unlimited;
  /// With fewer rows, each parameter keeps its value unless the rows halve its prior's spread, because few rows decide
  /// few parameters.
  std::size_t few_rows = 40;
  FitOptions fit = {};
};

/// Quality of a fit.
struct LinkFitReport {
  std::vector<FittedParameter> parameters;  ///< parameters that some row depends on, by their name in a file
  std::vector<double> errors;               ///< per row: predicted / measured - 1
  std::vector<std::string> left;            ///< names of those that few rows do not decide; they stay as they were
  double spread = 0.0;                      ///< robust spread of the rows' logarithms
  bool converged = false;
};

struct CollectiveFit {
  CollectiveParameters parameters;  ///< parameters that no row depends on are unchanged
  LinkFitReport report;
};

/// Fits every parameter of `start` that prices one of the rows, except the sizes at which protocols change. Parameters
/// that the rows leave open stay near the prior (ridge; Hoerl and Kennard, 1970), so few rows are enough; parameters
/// that few rows do not decide stay as they were. Requires at least one row.
CollectiveFit fit_collectives(const CollectiveParameters& start, std::span<const CollectiveRow> rows,
                              const LinkFitOptions& options);

struct PeerFit {
  PeerParameters parameters;
  LinkFitReport report;
};

/// Fits latency and rate. If it reduces the errors by at least a tenth, also fits those of small messages, with the
/// power of two up to which messages are small; fewer than twelve rows fit only latency and rate. The aggregate rate
/// follows the rate if they were equal. Requires at least one row.
PeerFit fit_peer(const PeerParameters& start, std::span<const PeerRow> rows, const LinkFitOptions& options);

/// Returns the price of one row.
double collective_microseconds(const CollectiveParameters& parameters, const CollectiveRow& row);

}  // namespace commfuse
