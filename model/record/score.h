// SPDX-License-Identifier: Apache-2.0
// How well predictions meet a table of measurements. An error is |predicted / measured - 1|, a fraction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/reliability.h"

namespace commfuse {

inline constexpr std::string_view score_schema = "commfuse.score/1";

/// All 0 where there is no error to sum up.
struct ErrorSummary {
  std::int64_t n = 0;
  double median = 0.0;
  double p68 = 0.0;  ///< As a standard error: two thirds are off by no more.
  double p90 = 0.0;
  double max = 0.0;
};

/// Percentiles between two errors are interpolated linearly between them, as numpy.percentile does.
ErrorSummary summary_of(std::vector<double> errors);

/// Errors of some rows of a table on one machine: "all_gather, one node, >= 64 KiB".
struct ScoredPart {
  std::string machine;
  std::string name;
  std::vector<double> errors;
  std::vector<double> held_out;  ///< Those of rows that every fit kept back.
};

/// One time of a row.
struct ScoredTime {
  std::int64_t line = 0;    ///< 1-based, of the file.
  std::size_t machine = 0;  ///< Its place in TableScore::machines.
  std::string part;         ///< The first part its error belongs to; empty where there is none.
  double measured_us = 0.0;
  double predicted_us = 0.0;
};

/// Rows that were not scored, and why.
struct Skipped {
  std::string reason;
  std::int64_t rows = 0;
};

/// A row, or the header, that is no such row.
struct RowFault {
  std::int64_t line = 0;  ///< 1-based, of the file.
  std::string reason;
};

/// Of tables that set variants of the same work against each other.
struct VariantScore {
  std::vector<double> ratio_errors;  ///< Of a variant's time over the first one's.
  std::int64_t compared = 0;         ///< Pieces of work of which the fastest variant was predicted.
  std::int64_t agreed = 0;           ///< Of these: the predicted winner is the measured one.
};

/// Whether overlap pays: overlapped kernels against serial, pairs that differ by more than `least_difference`.
struct PayScore {
  static constexpr double least_difference = 0.05;
  static constexpr double is_sure = 0.9;
  std::int64_t wins = 0, wins_told = 0;      ///< Overlap is faster; and predicted to be.
  std::int64_t losses = 0, losses_told = 0;  ///< Serial is.
  std::int64_t sure = 0, sure_told = 0;      ///< Predictions that were at least `is_sure` sure; and true.

  PayScore& operator+=(const PayScore& other);
  /// Mean of the shares of wins and of losses that were predicted, of those of which there are any. Requires a pair.
  [[nodiscard]] double balanced_accuracy() const;
};

/// One overlapped kernel beside serial, and the command that runs it again.
struct OverlapPair {
  std::int64_t line = 0;  ///< 1-based, of the file.
  std::string implementation;
  double measured_us = 0.0;
  double predicted_us = 0.0;
  double serial_measured_us = 0.0;
  double serial_predicted_us = 0.0;
  double sure = 0.5;  ///< That what is predicted to be faster is.
  std::string command;
};

/// The price of cutting the rows of a product into `parts`: parts x T(m / parts) / T(m).
struct PenaltyScore {
  int parts = 0;
  std::vector<double> errors;
  std::vector<double> of_no_penalty;  ///< What the prediction "penalty = 1" errs by on the same products.
  std::vector<double> held_out;       ///< Both, of products that every fit kept back.
  std::vector<double> held_out_of_no_penalty;
};

/// Of a table of training steps, over the rows that no fit has seen.
struct StepScore {
  std::int64_t n = 0;
  double mean = 0.0;              ///< Of the error.
  double rank_correlation = 0.0;  ///< Spearman's, of measured and predicted times.
  /// Two layouts of one model, batch and number of GPUs whose measured times differ by more than 5 %.
  std::int64_t layout_pairs = 0;
  std::int64_t better_named = 0;  ///< Of these: the faster one was predicted.
};

struct TableScore {
  std::string table;                  ///< File name.
  std::string path;                   ///< As the user named it, or the folder it was found in.
  std::string source;                 ///< Where it is from, as its first lines say; empty where they do not.
  std::string kind;                   ///< Empty: no kind of table that is known.
  std::string note;                   ///< Why nothing of it is scored; empty where rows were looked at.
  bool brought_along = false;         ///< One of configs/published.
  bool degraded = false;              ///< Its comments call the machine degraded: no measure of the model.
  std::vector<std::string> machines;  ///< Ours that its rows were predicted on.
  std::int64_t rows = 0;              ///< Scored, skipped and faulty ones together.
  std::int64_t scored = 0;            ///< Rows; one row may hold several times.
  std::vector<ScoredTime> times;      ///< Every time that was predicted, in the order of rows.
  std::vector<double> errors;         ///< Of each.
  std::vector<double> held_out;       ///< Those of rows that every fit kept back.
  std::vector<ScoredPart> parts;      ///< In the order of their first row.
  std::vector<Skipped> skipped;       ///< In the order of their first row.
  std::vector<std::string> remarks;   ///< What a reader should know: constants that one row fixed.
  std::vector<RowFault> faults;       ///< The first hundred.
  std::int64_t fault_count = 0;
  std::optional<VariantScore> variants;
  std::optional<PayScore> pays;
  std::vector<OverlapPair> pairs;
  std::vector<PenaltyScore> penalties;
  std::optional<StepScore> steps;
  std::vector<CheckedKind> checked;       ///< By kind and machine: rows that no fit has seen beside their intervals.
  std::vector<FitRows> fits;              ///< Where residuals are asked for: all rows of tables that a fit read.
  std::vector<JudgedPairs> judged;        ///< By ways and machine, the same rows.
  std::vector<Observation> observations;  ///< Of tables of single figures.
  std::optional<double> gain_distance{};  ///< Largest, of a step's gain by overlap: 0.02 is two points.
  std::optional<double> mfu_distance;     ///< The largest of predicted to published MFU, where a table has it.

  [[nodiscard]] std::int64_t skipped_rows() const {
    std::int64_t rows_skipped = 0;
    for (const Skipped& some : skipped) {
      rows_skipped += some.rows;
    }
    return rows_skipped;
  }
};

}  // namespace commfuse
