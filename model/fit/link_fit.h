// SPDX-License-Identifier: Apache-2.0
// From measured exchanges and collectives to the parameters of a link. The formulas fitted are the ones that price
// (model/cost/communication.h), so a fit and a prediction cannot come apart.
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
  double rates = 1.0;  ///< How many times as fast the group's wires are as the whole node's (with_rates).
};

/// One measured exchange: both directions busy.
struct PeerRow {
  Bytes bytes;
  double time_us = 0.0;
};

struct LinkFitOptions {
  std::string source;  ///< What the fitted parameters name as theirs: a table's file name.
  /// How far a parameter may be from what it starts at, as a standard deviation of its logarithm, before that counts as
  /// much as one row: what rows leave open stays near the prior.
  double prior_spread = 0.7;
  /// Rows below this size count for `small_weight` of a row: they are dominated by what hosts and clocks do.
  Bytes small_below{65'536};
  double small_weight = 0.3;
  /// No rate of the wires is fitted above this: what they are built for (Link::capacity).
  BytesPerSecond most = unlimited;
  /// Of fewer rows each parameter stays as it was unless they halve its prior's spread: few rows decide few parameters.
  std::size_t few_rows = 40;
  FitOptions fit = {};
};

/// How well a fit does.
struct LinkFitReport {
  std::vector<FittedParameter> parameters;  ///< Only those that some row depends on, by their name in a file.
  std::vector<double> errors;               ///< Of each row: predicted / measured - 1.
  std::vector<std::string> left;            ///< That few rows do not decide: as they were.
  double spread = 0.0;                      ///< Of the rows' logarithms, robust.
  bool converged = false;
};

struct CollectiveFit {
  CollectiveParameters parameters;  ///< Those that no row depends on are as they were.
  LinkFitReport report;
};

/// Every parameter of `start` that prices one of the rows is fitted, except the sizes where protocols change. What the
/// rows leave open stays near the prior (ridge; Hoerl and Kennard, 1970), so few rows are enough: then parameters that
/// they do not decide stay as they were. Requires at least one row.
CollectiveFit fit_collectives(const CollectiveParameters& start, std::span<const CollectiveRow> rows,
                              const LinkFitOptions& options);

struct PeerFit {
  PeerParameters parameters;
  LinkFitReport report;
};

/// Latency and rate; and, where it makes the errors smaller by a tenth at least, those of small messages with the
/// power of two up to which messages are small; of fewer than twelve rows, latency and rate alone. Aggregate rate
/// follows the rate where they were equal. Requires at least one row.
PeerFit fit_peer(const PeerParameters& start, std::span<const PeerRow> rows, const LinkFitOptions& options);

/// Prices one row.
double collective_microseconds(const CollectiveParameters& parameters, const CollectiveRow& row);

}  // namespace commfuse
