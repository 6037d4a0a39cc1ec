// SPDX-License-Identifier: Apache-2.0
// Scores predictions against tables of measurements, with one score per table.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/score.h"
#include "sim/score/known_machines.h"

namespace commfuse::score {

struct ScoreOptions {
  bool held_out = false;   ///< Skip rows that a fit may have used.
  bool residuals = false;  ///< Also collect the rows that fits read.
  std::string kind;        ///< Score only tables of this kind; if empty, all tables.
  /// Names of one-node machines: score only rows of these machines and of clusters of them; if empty, all rows.
  std::vector<std::string> hardware{};
};

/// The note on a table of unknown kind.
inline constexpr std::string_view of_no_kind = "its columns match no kind of table that score reads";

/// Returns the tables that the paths name: files as given, and for a folder all *.csv in and below it, sorted by path.
/// Throws ConfigError for a missing path, for a table that is named twice, and if there is no table.
std::vector<std::filesystem::path> tables_in(const std::vector<std::string>& paths);

/// Returns the folder of the tables that ship with the project.
std::filesystem::path published_tables();

/// Returns one score per table, in the order of the tables. `finished` is called after each table. Throws ConfigError
/// if a file cannot be read, and with the mistakes in a hardware file.
std::vector<TableScore> score_tables(const std::vector<std::filesystem::path>& tables, const ScoreOptions& options,
                                     const std::function<void()>& finished = {});

/// Scores a table, given as text, against these machines; `name` is the table's file name.
TableScore score_text(std::string text, std::string_view name, const ScoreOptions& options, KnownMachines machines);

}  // namespace commfuse::score
