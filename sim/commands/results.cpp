// SPDX-License-Identifier: Apache-2.0
// commfuse-sim results, best and diff: query a store, find the rows that win, and compare two stores.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/field.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/record/columns.h"
#include "model/stderr_text.h"
#include "model/strategies/strategies.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"
#include "reports/atomic_file.h"
#include "reports/fitted_table.h"
#include "reports/rows.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/sweep/store_query.h"

namespace commfuse::sim {

namespace {

using reports::Constant;
using reports::FittedColumn;
using reports::FittedTable;
using reports::TableNotes;

TableNotes how_to_see_more() { return {.below = "; choose with --columns, or use -o csv"}; }

/// The column of whole models that says whether a plan fits in memory: 0 or 1.
constexpr std::string_view fits_column = "fits";

constexpr std::int64_t max_limit = 1'000'000'000'000;

struct ResultsRequest {
  std::string file;
  std::string other;
  std::string where;
  std::string columns;
  std::string sort_by;
  std::string by;
  std::string per;
  std::int64_t limit = -1;
  bool bounds = false;
  bool verify = false;
  [[nodiscard]] Verify checks() const { return verify ? Verify::rows : Verify::nothing; }
  std::string format = "table";
  std::string out;
};

std::vector<std::string> words_in(const std::string& list) {
  std::vector<std::string> words;
  for (const std::string_view word : split_list(list)) {
    if (!word.empty()) {
      words.emplace_back(word);
    }
  }
  return words;
}

/// Writes rows: one by one in formats for programs, and all at the end in a table.
class RowWriter {
 public:
  RowWriter(std::string_view format, const std::string& out, TableNotes notes)
      : format_(format), notes_(std::move(notes)) {
    constexpr std::array<std::string_view, 4> formats{"table", "json", "jsonl", "csv"};
    require_word("--output", format, formats, "format");
    if (!out.empty()) {
      file_ = std::make_unique<reports::AtomicFile>(out);
    }
  }

  /// `columns` are the columns of the rows, in order.
  void begin(std::vector<FittedColumn> columns) {
    columns_ = std::move(columns);
    for (const FittedColumn& column : columns_) {
      names_.emplace_back(column.name);
      const Column* const known = find_column(column.name);
      are_flags_.push_back(known != nullptr && known->type == ColumnType::flag);
    }
    fits_ = static_cast<std::size_t>(std::ranges::find(names_, fits_column) - names_.begin());
    // A file does not depend on the width of the terminal.
    table_ = FittedTable(columns_, file_ ? page_width : terminal_width());
    if (format_ == "csv") {
      write(reports::csv_line(names_));
    }
    write(format_ == "json" ? "[" : "");
  }

  void row(std::span<const Value> values) {
    ++count_;
    does_not_fit_ += fits_ < values.size() && values[fits_] == Value(std::int64_t{0}) ? 1 : 0;
    if (format_ == "csv") {
      write(reports::csv_line(values, are_flags_));
    } else if (format_ == "table") {
      table_.add(values);
    } else {
      const std::string object = reports::json_object(names_, values, are_flags_);
      write(format_ == "jsonl" ? object + "\n" : (count_ == 1 ? "\n" : ",\n") + object);
    }
  }

  void end() {
    if (format_ == "table" && (count_ > 0 || file_)) {  // Without rows, a sentence on stderr replaces the table.
      if (does_not_fit_ > 0) {
        notes_.end =
            fmt::format("{} of {} rows {} not fit in memory; --where fits excludes such rows.{}{}", does_not_fit_,
                        count_, does_not_fit_ == 1 ? "does" : "do", notes_.end.empty() ? "" : " ", notes_.end);
      }
      table_.write(notes_, [&](const std::string& lines) { write(lines); });
    }
    write(format_ == "json" ? "\n]\n" : "");
    if (file_) {
      file_->commit();
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void write(const std::string& text) {
    file_ ? file_->write(text) : void(std::fwrite(text.data(), 1, text.size(), stdout));
  }

  std::string format_;
  std::unique_ptr<reports::AtomicFile> file_;
  std::vector<FittedColumn> columns_;
  std::vector<std::string_view> names_;  ///< Names of the columns.
  std::vector<bool> are_flags_;          ///< True for columns of true and false; SQL has 0 and 1.
  TableNotes notes_;
  FittedTable table_{{}, page_width};
  std::size_t count_ = 0;
  std::size_t fits_ = 0;          ///< Index of the column `fits`; the number of columns if it is not shown.
  std::size_t does_not_fit_ = 0;  ///< Number of rows whose plan does not fit in memory.
};

/// Returns the usual value of a machine setting, which needs no mention; empty for other columns.
std::string_view usual_of(std::string_view column) {
  const bool is_of_machine = column.ends_with("_bandwidth") || column == "all_reduce_kernel";
  return is_of_machine ? find_field(column)->preset : std::string_view();
}

/// Returns the default columns of a table: settings that tell rows apart, the time and MFU.
std::vector<FittedColumn> usual_columns(const StoreQuery& store) {
  constexpr std::array<std::string_view, 8> core{"model", "hardware", "scope", "gpus",
                                                 "ranks", "batch",    "seq",   "dtype"};
  constexpr std::array<std::string_view, 3> core_of_models{"tensor", "pipeline", "data"};
  const bool is_mixed = store.has_layers() && store.has_models();
  std::vector<FittedColumn> columns{{.name = "point", .expendable = 3}};
  for (std::string& name : store.point_columns()) {
    const bool is_core = std::ranges::find(core, name) != core.end() ||
                         (!is_mixed && std::ranges::find(core_of_models, name) != core_of_models.end());
    const std::string_view usual = usual_of(name);
    if (is_core || !usual.empty() || !is_mixed) {  // Most other settings apply to one kind of row.
      columns.push_back({.name = std::move(name),
                         .constant = is_core || !usual.empty() ? Constant::stated : Constant::hidden,
                         .usual = std::string(usual),
                         .expendable = 1});
    }
  }
  columns.push_back({.name = "strategy"});
  columns.push_back({.name = "implements", .constant = Constant::stated, .expendable = 1});
  columns.push_back({.name = store.time_column()});
  columns.push_back({.name = "tokens_per_second", .expendable = 2});
  columns.push_back({.name = "mfu", .expendable = 2});
  columns.push_back({.name = "status", .constant = Constant::stated, .usual = "ok", .expendable = 1});
  columns.push_back({.name = std::string(fits_column), .constant = Constant::stated, .usual = "1", .expendable = 1});
  std::erase_if(columns, [&](const FittedColumn& column) {
    return (is_mixed && (column.name == "status" || column.name == fits_column)) ||
           std::ranges::find(store.columns(), column.name) == store.columns().end();
  });
  return columns;
}

std::vector<FittedColumn> as_columns(const std::vector<std::string>& names) {
  std::vector<FittedColumn> columns;
  for (const std::string& name : names) {
    columns.push_back({.name = name});
  }
  return columns;
}

/// Shows the column that `--by` or `--sort-by` names (with - in front: the largest value first) among the usual
/// columns, after the time. An unknown column is left to the query, which refuses it.
void show_compared_column(const std::string& by, const StoreQuery& store, std::vector<FittedColumn>& columns) {
  const std::string name = by.substr(by.starts_with('-') ? 1 : 0);
  if (std::ranges::find(store.columns(), name) == store.columns().end()) {
    return;
  }
  if (const auto shown = std::ranges::find(columns, name, &FittedColumn::name); shown != columns.end()) {
    shown->expendable = 0;
    return;
  }
  const auto time = std::ranges::find(columns, store.time_column(), &FittedColumn::name);
  columns.insert(time == columns.end() ? time : time + 1, {.name = name});
}

/// Returns the columns that an SQL expression names, bare or in double quotes. Ignores names in strings.
std::vector<std::string> columns_named_in(std::string_view where, const StoreQuery& store) {
  const auto is_of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::vector<std::string> names;
  for (std::size_t i = 0; i < where.size();) {
    if (where[i] == '\'') {
      const std::size_t end = where.find('\'', i + 1);
      i = end == std::string_view::npos ? where.size() : end + 1;
      continue;
    }
    const auto end = std::find_if_not(where.begin() + static_cast<std::ptrdiff_t>(i), where.end(), is_of_name);
    const std::string word(where.begin() + static_cast<std::ptrdiff_t>(i), end);
    const bool is_column = std::ranges::find(store.columns(), word) != store.columns().end();
    if (is_column && std::ranges::find(names, word) == names.end()) {
      names.push_back(word);
    }
    i += std::max<std::size_t>(word.size(), 1);
  }
  return names;
}

/// Shows the columns that `--where` names: as columns if their values differ, else above the table.
void show_selecting_columns(std::string_view where, const StoreQuery& store, std::vector<FittedColumn>& columns) {
  for (const std::string& name : columns_named_in(where, store)) {
    const auto shown = std::ranges::find(columns, name, &FittedColumn::name);
    if (shown == columns.end()) {
      columns.push_back({.name = name, .constant = Constant::stated});
      continue;
    }
    shown->constant = shown->constant == Constant::hidden ? Constant::stated : shown->constant;
    shown->usual.clear();
    shown->expendable = 0;
  }
}

/// JSON cannot hold a column twice.
void refuse_repeated_columns(const std::vector<std::string>& names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) != name) {
      throw ConfigError(fmt::format("--columns: {} is given twice; keep one of them", in_quotes(*name)));
    }
  }
}

/// Returns the columns of the answer, in order.
std::vector<FittedColumn> columns_of(const ResultsRequest& request, const StoreQuery& store) {
  const std::vector<std::string> words = words_in(request.columns);
  refuse_repeated_columns(words);
  if (words.empty() && request.format == "table") {
    std::vector<FittedColumn> columns = usual_columns(store);
    for (const std::string& name : words_in(request.sort_by)) {
      show_compared_column(name, store, columns);
    }
    show_selecting_columns(request.where, store, columns);
    return columns;
  }
  const bool are_all = words.empty() || words == std::vector<std::string>{"all"};
  return as_columns(are_all ? store.columns() : words);
}

Query query_of(const ResultsRequest& request, const std::vector<FittedColumn>& columns) {
  Query query{.where = request.where, .columns = {}, .sort_by = words_in(request.sort_by), .limit = request.limit};
  for (const FittedColumn& column : columns) {
    query.columns.push_back(column.name);
  }
  return query;
}

/// Calls ask(take) and prints the rows that `take` receives. Returns whether there is a row.
bool print(const ResultsRequest& request, const std::vector<FittedColumn>& columns, TableNotes notes,
           const std::function<void(const TakeRow&)>& ask) {
  reports::require_no_input(request.out, std::array{request.file, request.other});
  RowWriter writer(request.format, request.out, std::move(notes));
  bool begun = false;
  ask([&](std::span<const Value> values) {
    if (!std::exchange(begun, true)) {
      writer.begin(columns);
    }
    writer.row(values);
  });
  if (!begun) {
    writer.begin(columns);
  }
  writer.end();
  return writer.count() > 0;
}

int show_results(const ResultsRequest& request) {
  const StoreQuery store(request.file, request.checks());
  const std::vector<FittedColumn> columns = columns_of(request, store);
  const Query query = query_of(request, columns);
  const bool has_rows =
      print(request, columns, how_to_see_more(), [&](const TakeRow& take) { store.run(query, take); });
  if (!has_rows && request.limit != 0) {
    fmt::print(stderr, "no rows{}\n", request.where.empty() ? "" : "; --where matches none");
  }
  return exit_code::done;
}

/// Returns the names of the strategies that are lower bounds, which no implementation reaches.
std::vector<std::string> bounds() {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) {
    if (strategy.bound) {
      names.emplace_back(strategy.name);
    }
  }
  return names;
}

/// Returns the reason why `best` has no row.
std::string why_no_row_wins(const StoreQuery& store, BestQuery best) {
  const auto has_row = [&](const auto& query) {
    bool has = false;
    store.run(query, [&](std::span<const Value>) { has = true; });
    return has;
  };
  best.query.limit = 1;
  best.query.sort_by.clear();
  if (!has_row(best.query)) {
    return best.query.where.empty() ? "no rows" : "no rows; --where matches none";
  }
  best.without.clear();
  best.without_bounds = false;
  return has_row(best)
             ? "no row wins; add --bounds to include bounds"
             : fmt::format("no row wins: none has a value of {}", best.by.substr(best.by.starts_with('-') ? 1 : 0));
}

/// Returns whether rows with larger values of a column are better.
bool is_better_if_larger(std::string_view column) {
  constexpr std::array<std::string_view, 8> columns{"mfu",          "mfu_mean",          "mfu_p99",
                                                    "hfu",          "tokens_per_second", "tokens_per_second_gpu",
                                                    "beats_serial", "win_probability"};
  return std::ranges::find(columns, column) != columns.end();
}

int show_best(const ResultsRequest& request) {
  const StoreQuery store(request.file, request.checks());
  std::vector<FittedColumn> columns = columns_of(request, store);
  if (request.format == "table" && words_in(request.columns).empty()) {
    show_compared_column(request.by, store, columns);
  }
  BestQuery best{.by = request.by.empty() ? store.time_column() : request.by,
                 .per = request.per.empty() ? store.point_columns() : words_in(request.per),
                 .without = {},
                 .query = query_of(request, columns)};
  const auto is_strategy = [](const std::string& name) { return name == "strategy"; };
  const bool excludes_bounds = !request.bounds && std::ranges::any_of(store.columns(), is_strategy) &&
                               std::ranges::none_of(best.per, is_strategy);
  if (excludes_bounds) {
    best.without = bounds();
    best.without_bounds = std::ranges::find(store.columns(), "bound") != store.columns().end();
  }
  if (is_better_if_larger(request.by)) {
    fmt::print(stderr, "note: --by {0} shows the rows with the smallest {0}; --by -{0} shows those with the largest\n",
               request.by);
  }
  TableNotes notes = how_to_see_more();
  if (request.by.empty() && request.per.empty()) {  // Other groups and columns have no verdicts.
    notes.end = fmt::format("Compared by {} alone; commfuse-sim report says which leads are ties.", best.by);
  }
  const bool has_rows = print(request, columns, std::move(notes), [&](const TakeRow& take) { store.run(best, take); });
  if (!has_rows && request.limit != 0) {
    fmt::print(stderr, "{}\n", why_no_row_wins(store, std::move(best)));
  }
  return exit_code::done;
}

/// Returns the columns of a comparison of two stores.
std::vector<FittedColumn> columns_of_differences(const StoreQuery& store, const StoreQuery& other) {
  std::vector<FittedColumn> columns = as_columns(store.difference_columns(other));
  constexpr std::size_t values = 4;  // strategy, before, after, ratio
  for (FittedColumn& column : std::span(columns).first(columns.size() - values)) {
    column.constant = Constant::stated;
    column.usual = usual_of(column.name);
    column.expendable = 1;
  }
  return columns;
}

/// Returns "settings that differ: launch (stream before, graph after)"; empty if none differs.
std::string changes_in_words(const std::vector<ChangedSetting>& settings) {
  std::vector<std::string> changes;
  for (const ChangedSetting& setting : settings) {
    changes.push_back(fmt::format("{} ({} before, {} after)", setting.name, setting.before, setting.after));
  }
  return changes.empty() ? "" : fmt::format("settings that differ: {}", fmt::join(changes, ", "));
}

int show_differences(const ResultsRequest& request) {
  StoreQuery store(request.file, request.checks());
  const StoreQuery other(request.other, request.checks());
  const std::string by = request.by.empty() ? store.time_column(other) : request.by;
  const std::string settings = changes_in_words(store.changed_settings(other));
  const bool is_table = request.format == "table";
  const bool has_rows = print(request, columns_of_differences(store, other),
                              {.above = fmt::format("{} before and after; ratio = after / before{}{}", by,
                                                    settings.empty() ? "" : "; ", settings),
                               .below = "; -o csv has every column"},
                              [&](const TakeRow& take) { store.differences(other, by, take); });
  if (has_rows && !is_table && !settings.empty()) {
    fmt::print(stderr, "{}", for_stderr(settings + "\n"));
  }
  if (!has_rows) {  // On stderr, so that programs can still parse stdout.
    fmt::print(stderr, "{}",
               for_stderr(fmt::format("no differences in {}{}{}\n", by, settings.empty() ? "" : "; ", settings)));
    return exit_code::done;
  }
  return exit_code::gate_missed;
}

void add_output_flags(CLI::App& command, ResultsRequest& request) {
  offers_words(command.add_option("-o,--output", request.format, "Format: table, json, jsonl or csv")
                   ->type_name("FORMAT")
                   ->capture_default_str(),
               {"table", "json", "jsonl", "csv"});
  command.add_option("--out", request.out, "File to write instead of stdout")->type_name("PATH");
  command.add_flag("--verify", request.verify, "Check every row of a store against its checksum first");
}

void add_query_flags(CLI::App& command, ResultsRequest& request) {
  command.add_option("FILE", request.file, "Folder of a sweep, its store, JSON or JSON Lines; -: stdin")->required();
  command.add_option("--where", request.where, "SQL expression over columns that selects rows")
      ->type_name("EXPRESSION");
  command
      .add_option("--columns", request.columns,
                  "Columns to show, comma-separated, or all (table default: those that vary)")
      ->type_name("NAMES");
  command.add_option("--sort-by", request.sort_by, "Columns to sort by; -mfu sorts mfu descending")->type_name("NAMES");
  command.add_option("--limit", request.limit, "Maximum number of rows")
      ->type_name("COUNT")
      ->check(CLI::Range(std::int64_t{0}, max_limit));
  add_output_flags(command, request);
}

}  // namespace

void add_results(CLI::App& app, int& status) {
  add_verb(app, "results", "Query the results of a sweep", [&status](CLI::App& command) {
    const auto request = std::make_shared<ResultsRequest>();
    add_query_flags(command, *request);
    command.footer(
        "Columns are those of docs/metrics.md, plus point, the number of the point.\n"
        "A table also shows the columns that --where and --sort-by name.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim results out/mine --where \"ranks = 8 AND mfu > 0.6\" --sort-by -mfu\n"
        "  commfuse-sim results out/mine --columns model,seq,strategy,mfu -o csv");
    command.callback([request, &status] { status = show_results(*request); });
  });
}

void add_best(CLI::App& app, int& status) {
  add_verb(app, "best", "Show which rows of a store win", [&status](CLI::App& command) {
    const auto request = std::make_shared<ResultsRequest>();
    add_query_flags(command, *request);
    command.add_option("--by", request->by, "Column to minimize; -mfu maximizes mfu (default: the time)")
        ->type_name("NAME");
    command.add_option("--per", request->per, "Columns that make a group, one row per group (default: a point)")
        ->type_name("NAMES");
    command.add_flag("--bounds", request->bounds, "Include bounds, which no implementation reaches");
    command.footer(
        "The smallest time wins, however small its lead. commfuse-sim report judges\n"
        "leads by their difference and probability.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim best out/crossover\n"
        "  commfuse-sim best out/million --per model,ranks --by -mfu");
    command.callback([request, &status] { status = show_best(*request); });
  });
}

void add_diff(CLI::App& app, int& status) {
  add_verb(app, "diff", "Show what changed between two stores", [&status](CLI::App& command) {
    const auto request = std::make_shared<ResultsRequest>();
    command.add_option("A", request->file, "Sweep folder, store, JSON or JSON Lines, before")->required();
    command.add_option("B", request->other, "Sweep folder, store, JSON or JSON Lines, after")->required();
    command.add_option("--by", request->by, "Column to compare (default: the time)")->type_name("NAME");
    add_output_flags(command, *request);
    command.footer(
        "Matches rows by settings and strategy, not by number, so the sweeps may differ.\n"
        "A setting of the simulation, such as launch or jitter, may have another value\n"
        "in B than in A; such settings are named.\n"
        "Prints the largest change first; a row that is in only one store has no\n"
        "value for the other. Exits with 4 if anything differs.\n\n"
        "Example:\n"
        "  commfuse-sim diff out/before out/after -o csv");
    command.callback([request, &status] { status = show_differences(*request); });
  });
}

}  // namespace commfuse::sim
