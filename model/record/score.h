// SPDX-License-Identifier: Apache-2.0
// Accuracy of predictions against a table of measurements. An error is |predicted / measured - 1|, a fraction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/reliability.h"

namespace commfuse {

inline constexpr std::string_view score_schema = "commfuse.score/1";

/// Summary of errors; all 0 without errors.
struct ErrorSummary {
  std::int64_t n = 0;
  double median = 0.0;
  double p68 = 0.0;  ///< like a standard error: 68% of the errors are no larger
  double p90 = 0.0;
  double max = 0.0;
};

/// Returns the summary. Percentiles between two errors are interpolated linearly, as numpy.percentile does.
ErrorSummary summary_of(std::vector<double> errors);

/// Errors of some rows of a table on one machine: "all_gather, one node, >= 64 KiB".
struct ScoredPart {
  std::string machine;
  std::string name;
  std::vector<double> errors;
  std::vector<double> held_out;  ///< rows that every fit held out
};

/// One time of a row.
struct ScoredTime {
  std::int64_t line = 0;    ///< 1-based line of the file
  std::size_t machine = 0;  ///< index in TableScore::machines
  std::string part;         ///< first part that contains its error; empty if none does
  double measured_us = 0.0;
  double predicted_us = 0.0;
  bool is_factor = false;  ///< Both values are ratios of times, without a unit.
};

/// Rows that were not scored, and the reason.
struct Skipped {
  std::string reason;
  std::int64_t rows = 0;
};

/// A malformed row or header.
struct RowFault {
  std::int64_t line = 0;  ///< 1-based line of the file
  std::string reason;
};

/// Score of tables that compare variants of the same work.
struct VariantScore {
  std::vector<double> ratio_errors;  ///< errors of the ratio of a variant's time to the first variant's
  std::int64_t compared = 0;         ///< pieces of work for which a winner was predicted
  std::int64_t agreed = 0;           ///< number of these for which the measured winner was predicted
};

/// Score of predictions of whether overlap pays off: overlapped kernels against serial, for pairs that differ by more
/// than `least_difference`.
struct PayScore {
  static constexpr double least_difference = 0.05;
  static constexpr double is_sure = 0.9;
  std::int64_t wins = 0, wins_predicted = 0;      ///< Pairs where overlap is faster; number of these predicted.
  std::int64_t losses = 0, losses_predicted = 0;  ///< Pairs where serial is faster; number of these predicted.
  std::int64_t sure = 0,
               sure_predicted = 0;  ///< Predictions with a probability of at least `is_sure`; number that were right.

  PayScore& operator+=(const PayScore& other);
  /// Returns the mean of the shares of wins and of losses that were predicted; nullopt without wins or without losses,
  /// because a constant prediction would then be perfect.
  [[nodiscard]] std::optional<double> balanced_accuracy() const;
};

/// One overlapped kernel compared with serial, and the command that runs the prediction again.
struct OverlapPair {
  std::int64_t line = 0;  ///< 1-based line of the file
  std::string implementation;
  double measured_us = 0.0;
  double predicted_us = 0.0;
  std::string without;  ///< Source whose rows the fit behind predicted_us left out; `command` uses the fit to all rows.
  double serial_measured_us = 0.0;
  double serial_predicted_us = 0.0;
  double sure = 0.5;  ///< probability that the kernel predicted to be faster is indeed faster
  std::string command;
};

/// Relative cost of cutting the rows of a GEMM into `parts`: parts x T(m / parts) / T(m).
struct PenaltyScore {
  int parts = 0;
  std::vector<double> errors;
  std::vector<double> of_no_penalty;  ///< errors of the prediction "penalty = 1" for the same GEMMs
  std::vector<double> held_out;       ///< members of `errors` that every fit held out; next, those of `of_no_penalty`
  std::vector<double> held_out_of_no_penalty;
};

/// Score of a table of training steps, over the rows that no fit has seen.
struct StepScore {
  std::int64_t n = 0;
  double mean = 0.0;                       ///< mean error
  std::optional<double> rank_correlation;  ///< Spearman's, of measured and predicted times; none if all are equal
  /// Number of layout pairs, each for one model, batch and number of GPUs, whose measured times differ by more than 5%.
  std::int64_t layout_pairs = 0;
  std::int64_t better_named = 0;  ///< number of these for which the faster layout was predicted
};

/// Number of steps that are known to have run or to have run out of memory, and number of correct predictions.
struct MemoryScore {
  std::int64_t facts = 0;
  std::int64_t agreed = 0;
};

struct TableScore {
  std::string table;                  ///< name of the file
  std::string path;                   ///< path of the file, as the user gave it or inside the folder that the user gave
  std::string source;                 ///< origin, from its first lines; empty if they do not state it
  std::string kind;                   ///< empty for an unknown kind of table
  std::string note;                   ///< reason why no row is scored; empty if rows were examined
  bool brought_along = false;         ///< a table of configs/published
  bool degraded = false;              ///< Its comments call the machine degraded, so it does not measure the model.
  std::vector<std::string> machines;  ///< hardware files with which its rows were predicted
  std::int64_t rows = 0;              ///< scored, skipped and faulty rows together
  std::int64_t scored = 0;            ///< scored rows; one row may contain several times
  std::vector<ScoredTime> times;      ///< every predicted time, in the order of rows
  std::vector<double> errors;         ///< one per time
  std::vector<double> held_out;       ///< errors of rows that every fit held out
  std::vector<ScoredPart> parts;      ///< in the order of their first row
  std::vector<Skipped> skipped;       ///< in the order of their first row
  std::vector<std::string> remarks;   ///< notes for readers, such as constants that one row fixed
  std::vector<RowFault> faults;       ///< the first hundred
  std::int64_t fault_count = 0;
  std::optional<VariantScore> variants;
  std::optional<PayScore> pays;
  std::vector<OverlapPair> pairs;
  std::vector<PenaltyScore> penalties;
  std::optional<StepScore> steps;
  std::optional<MemoryScore> memory;      ///< from tables of memory facts, and of training steps (which all ran)
  std::vector<CheckedKind> checked;       ///< by kind and machine: rows that no fit has seen, with their intervals
  std::vector<FitRows> fits;              ///< if residuals are requested: all rows of tables that a fit read
  std::vector<JudgedPairs> judged;        ///< pairs of ways to do the same work, by ways and machine
  std::vector<Observation> observations;  ///< from tables of single values
  std::optional<double> gain_distance{};  ///< largest error of a step's gain by overlap: 0.02 is two percentage points
  std::optional<double> mfu_distance;     ///< largest difference of predicted and published MFU, if the table has MFU

  [[nodiscard]] std::int64_t skipped_rows() const {
    std::int64_t rows_skipped = 0;
    for (const Skipped& group : skipped) {
      rows_skipped += group.rows;
    }
    return rows_skipped;
  }
};

}  // namespace commfuse
