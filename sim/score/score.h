// SPDX-License-Identifier: Apache-2.0
// Predictions against tables of measurements: files in, one score a table out.
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

/// The note of a table whose kind nobody knows.
inline constexpr std::string_view of_no_kind = "its columns are those of no kind of table that is scored";

/// A file of the list is taken as it is; of a folder all *.csv in and below it, sorted by path. Throws ConfigError for
/// a path that is not there, a table that is given twice and when there is no table at all.
std::vector<std::filesystem::path> tables_in(const std::vector<std::string>& paths);

/// The tables the project brings along.
std::filesystem::path published_tables();

/// One score a table, in their order. `finished` is called after each. Throws ConfigError when a file cannot be read,
/// and with the mistakes of a hardware file.
std::vector<TableScore> score_tables(const std::vector<std::filesystem::path>& tables, const ScoreOptions& options,
                                     const std::function<void()>& finished = {});

/// One table from its text; `name` is its file's.
TableScore score_text(std::string text, std::string_view name, const ScoreOptions& options);

}  // namespace commfuse::score
