// SPDX-License-Identifier: Apache-2.0
#include "sim/score/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/text/files.h"
#include "model/text/suggest.h"
#include "sim/score/kinds.h"
#include "sim/score/table.h"

namespace commfuse::score {

namespace {

namespace fs = std::filesystem;

void add_folder(const fs::path& folder, std::vector<fs::path>& tables) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    std::error_code error;  // a link that leads to itself is not a file
    if (entry.is_regular_file(error) && entry.path().extension() == ".csv") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  tables.insert(tables.end(), files.begin(), files.end());
}

/// Returns the source that the comments of a table name, otherwise the first source that its rows name, with a note if
/// other rows name other sources.
std::string source_of(const Table& table) {
  if (const std::string_view source = table.comment("source"); !source.empty()) {
    return std::string(source);
  }
  const Column column = table.column("source");
  std::string first;
  for (std::size_t row = 0; column.exists() && row < table.rows(); ++row) {
    if (table.cells_of(row) != table.header().size()) {
      continue;
    }
    const std::string_view source = table.cell(row, column);
    if (source.empty()) {
      continue;
    }
    if (!first.empty() && source != first) {
      return first + "; other rows name other sources";
    }
    first = source;
  }
  return first;
}

TableScore score_table(const Table& table, const fs::path& path, const ScoreOptions& options, KnownMachines& machines,
                       Predictor& predictor, Doubts& doubts) {
  TableScore score{.table = path.filename().string(), .path = path.string()};
  score.degraded = table.comments_say("degraded");
  score.source = source_of(table);
  const Kind* kind = kind_of(table);
  if (std::string mistake = kind == nullptr ? mistake_in_header(table) : repeated_column(table); !mistake.empty()) {
    score.faults.push_back({table.header_line(), std::move(mistake)});
    score.fault_count = 1;
    score.rows = static_cast<std::int64_t>(table.rows());
    score.note = "its header is wrong";
    return score;
  }
  score.kind = kind == nullptr ? "" : kind->name;
  if (kind == nullptr || kind->score == nullptr) {
    score.note = kind == nullptr ? std::string(of_no_kind) : kind->why_not;
    score.rows = static_cast<std::int64_t>(table.rows());
    score.skipped.push_back({score.note, score.rows});
    return score;
  }
  const std::string stem = path.stem().string();
  Context context{.machines = machines,
                  .predictor = predictor,
                  .doubts = doubts,
                  .file_name = stem,
                  .residuals = options.residuals};
  Tally tally(score, options.held_out);
  kind->score(table, context, tally);
  return score;
}

}  // namespace

std::vector<fs::path> tables_in(const std::vector<std::string>& paths) {
  std::vector<fs::path> tables;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      add_folder(path, tables);
    } else if (fs::exists(path, error)) {
      tables.emplace_back(path);
    } else {
      throw ConfigError(fmt::format("--data {}: no such file or folder; check the path", in_quotes(path)));
    }
  }
  if (tables.empty()) {
    throw ConfigError(
        fmt::format("{} contains no table; name CSV files, or a folder that contains some", in_quotes(paths.front())));
  }
  refuse_repeated_files(tables);
  return tables;
}

fs::path published_tables() { return config_directory() / "published"; }

std::vector<TableScore> score_tables(const std::vector<fs::path>& tables, const ScoreOptions& options,
                                     const std::function<void()>& finished) {
  KnownMachines machines;
  machines.keep_only(options.hardware);
  StructureCache structures;
  Predictor predictor(structures);
  Doubts doubts;
  std::vector<TableScore> scores;
  const fs::path published = fs::weakly_canonical(published_tables());
  for (const fs::path& path : tables) {
    const Table table = read_table(path);
    const Kind* kind = kind_of(table);
    if (options.kind.empty() || (kind != nullptr && kind->name == options.kind)) {
      scores.push_back(score_table(table, path, options, machines, predictor, doubts));
      scores.back().brought_along = fs::weakly_canonical(path).parent_path() == published;
    }
    if (finished) {
      finished();
    }
  }
  return scores;
}

TableScore score_text(std::string text, std::string_view name, const ScoreOptions& options, KnownMachines machines) {
  machines.keep_only(options.hardware);
  StructureCache structures;
  Predictor predictor(structures);
  Doubts doubts;
  return score_table(Table(std::move(text)), fs::path(name), options, machines, predictor, doubts);
}

}  // namespace commfuse::score
