// SPDX-License-Identifier: Apache-2.0
// Compares predictions with measurements: the time of each schedule, their order, and the winner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/run_record.h"
#include "validate/compare/op_comparison.h"
#include "validate/measure/bootstrap.h"
#include "validate/measure/protocol.h"

namespace commfuse::validate {

inline constexpr std::string_view comparison_schema = "commfuse.compare/1";

struct ComparedSchedule {
  std::string strategy;
  std::string parameters;  ///< In words; may be empty.
  std::string schedule_sha256;
  Duration predicted{};
  std::vector<Duration> makespans{};  ///< By round; empty if the run failed.
  std::optional<Summary> measured{};  ///< Summary of the makespans.
  std::optional<ComparedOps> ops{};   ///< Nothing: not requested, or the run failed.

  /// Returns "sliced (k=4)".
  [[nodiscard]] std::string name() const;
  /// Returns measured over predicted. Requires a measured time, and a predicted time above 0.
  [[nodiscard]] double ratio() const;
};

/// Summary over the schedules that were measured.
struct Agreement {
  std::size_t compared = 0;
  double median_error = 0.0;  ///< Median of |measured / predicted - 1|.
  double worst_error = 0.0;
  std::size_t worst = 0;     ///< Index of the schedule with the largest error.
  std::size_t pairs = 0;     ///< Pairs of schedules whose predictions are more than `clear_gap` apart.
  std::size_t in_order = 0;  ///< Pairs among these that were measured in the predicted order.
  std::size_t predicted_winner = 0;
  std::size_t measured_winner = 0;
  /// Relative difference between the two fastest predictions; 0 if only one schedule was measured.
  double predicted_gap = 0.0;
  /// Time of the best rival over the time of the measured winner. The rival is the predicted winner or, if it won, the
  /// fastest other schedule. Nothing if only one schedule was measured.
  std::optional<Ratio> lead{};
};

/// Smallest relative difference that a model has to predict; an emulated run agrees if no error exceeds it.
inline constexpr double clear_gap = 0.05;

/// Returns the summary; nothing if nothing was measured.
std::optional<Agreement> agreement_of(std::span<const ComparedSchedule> schedules);

/// The meaning of a run's times.
enum class Evidence : std::uint8_t {
  measured,  ///< its ops did their work
  emulated   ///< its ops slept for the predicted durations
};
Evidence evidence_of(const RunRecord& record);

/// Returns a table of at most 80 columns: one line per schedule, fastest prediction first, with the times of its ops if
/// they were compared, and the verdict.
std::string to_table(std::span<const ComparedSchedule> schedules, Evidence evidence = Evidence::measured);
/// Returns an array of objects, one per line, each with "schema":"commfuse.compare/1"; times are in microseconds.
std::string to_json(std::span<const ComparedSchedule> schedules, Evidence evidence = Evidence::measured);
/// Returns the winner, the errors and the order, one sentence each; for an emulated run also what it shows and what it
/// does not show, or, if an error exceeds clear_gap, what to do.
std::string verdict_in_words(std::span<const ComparedSchedule> schedules, const Agreement& agreement,
                             Evidence evidence = Evidence::measured);

}  // namespace commfuse::validate
