// SPDX-License-Identifier: Apache-2.0
// Scores predictions against tables of measurements, with one score per table.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/score.h"

namespace commfuse::score {

struct ScoreOptions {
  bool held_out = false;   ///< Only rows of groups that every fit kept back.
  bool residuals = false;  ///< Collect the rows that fits read too.
  std::string kind;        ///< Only tables of this kind; empty: all.
};

/// The note of a table of unknown kind.
inline constexpr std::string_view of_no_kind = "its columns are those of no kind of table that is scored";

/// Returns the tables: a file of the list itself; for a folder all *.csv in and below it, sorted by path. Throws
/// ConfigError for a missing path, a table that is given twice and when there is no table at all.
std::vector<std::filesystem::path> tables_in(const std::vector<std::string>& paths);

/// Returns the folder of the tables that ship with the project.
std::filesystem::path published_tables();

/// Returns one score per table, in their order. `finished` is called after each. Throws ConfigError when a file cannot
/// be read, and with the mistakes of a hardware file.
std::vector<TableScore> score_tables(const std::vector<std::filesystem::path>& tables, const ScoreOptions& options,
                                     const std::function<void()>& finished = {});

/// Scores one table from its text; `name` is that of its file.
TableScore score_text(std::string text, std::string_view name, const ScoreOptions& options);

}  // namespace commfuse::score
