// SPDX-License-Identifier: Apache-2.0
// Predicted against measured: schedule by schedule, in which order, and whether the winner was named.
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
  std::vector<Duration> makespans{};  ///< By round; empty: it failed.
  std::optional<Summary> measured{};  ///< Of these.
  std::optional<ComparedOps> ops{};   ///< Nothing: nobody asked, or it failed.

  /// "sliced (k=4)"
  [[nodiscard]] std::string name() const;
  /// Measured over predicted. Requires a measurement.
  [[nodiscard]] double ratio() const;
};

/// Those that were measured, summed up.
struct Agreement {
  std::size_t compared = 0;
  double median_error = 0.0;  ///< Of |measured / predicted - 1|.
  double worst_error = 0.0;
  std::size_t worst = 0;     ///< Place of the schedule it is of.
  std::size_t pairs = 0;     ///< Of schedules that are predicted to be more than `clear_gap` apart.
  std::size_t in_order = 0;  ///< Of these, those that were measured in the order predicted.
  std::size_t predicted_winner = 0;
  std::size_t measured_winner = 0;
  /// How much longer the second is predicted to take than the first; 0: there is no second.
  double predicted_gap = 0.0;
  /// Over the time of the measured winner: that of the predicted one, or where it won that of the second. Nothing:
  /// one was measured.
  std::optional<Ratio> lead{};
};

/// A difference that a model has to get right.
inline constexpr double clear_gap = 0.05;

/// Nothing where nothing was measured.
std::optional<Agreement> agreement_of(std::span<const ComparedSchedule> schedules);

/// What a run's times are evidence of.
enum class Evidence : std::uint8_t {
  measured,  ///< Its ops did their work.
  emulated   ///< Its ops slept for the durations that were predicted.
};
Evidence evidence_of(const RunRecord& record);

/// At most 80 columns: a line a schedule, fastest prediction first, what its ops took where that was compared, and the
/// verdict.
std::string to_table(std::span<const ComparedSchedule> schedules, Evidence evidence = Evidence::measured);
/// An array of objects, one a line, each with "schema":"commfuse.compare/1"; times in microseconds.
std::string to_json(std::span<const ComparedSchedule> schedules, Evidence evidence = Evidence::measured);
/// The winner, the errors, the order, each a sentence; of an emulated run then what that shows and what it does not.
std::string verdict_in_words(std::span<const ComparedSchedule> schedules, const Agreement& agreement,
                             Evidence evidence = Evidence::measured);

}  // namespace commfuse::validate
