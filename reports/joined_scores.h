// SPDX-License-Identifier: Apache-2.0
// Joins the scores of several tables. Excludes tables of degraded machines, which the model does not describe. Excludes
// the tables of configs/published if any other table is scored, because both may contain the same rows.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/record/score.h"

namespace commfuse::reports {

/// Coverage of one kind on one machine over all tables.
struct CoverageRow {
  std::string kind;
  std::string machine;
  bool fitted = false;
  Coverage coverage;

  [[nodiscard]] std::string machine_in_words() const { return machine + (fitted ? "" : " (no fit)"); }
};

/// Returns rows by kind in the order of their first table, then by machine.
std::vector<CoverageRow> coverage_rows(std::span<const TableScore> scores);

using PairsByMachine = std::map<std::string, std::map<std::string, std::vector<JudgedPair>>>;

/// Returns pairs by machine, then by JudgedPairs::ways (the two ways of doing the same work).
PairsByMachine pairs_of(std::span<const TableScore> scores);
std::vector<JudgedPair> merged_pairs(const std::map<std::string, std::vector<JudgedPair>>& by_ways);
std::vector<JudgedPair> merged_pairs(const PairsByMachine& by_machine);

/// Returns the times of kinds that a fit covers if `fitted`, otherwise the times of all other kinds.
std::vector<CheckedTime> times_of(std::span<const TableScore> scores, bool fitted);

std::vector<Observation> observations_of(std::span<const TableScore> scores);

/// Returns the rows of each fit, read and held out, by machine and key.
std::vector<FitRows> fits_of(std::span<const TableScore> scores);

/// Formats a fraction as a whole percentage, such as "69".
std::string whole_percent(double fraction);
/// Formats share and band in percent, such as "69±3".
std::string with_band(const ObservedShare& observed);

/// Returns an object with `share` and `band`.
nlohmann::ordered_json share_json(const ObservedShare& observed);
/// Returns an array with `share`, `band` and `level` for each of coverage_levels.
nlohmann::ordered_json levels_json(const Coverage& coverage);

}  // namespace commfuse::reports
