// SPDX-License-Identifier: Apache-2.0
// commfuse-sim results, best and diff: what a store holds, which rows win, and what changed between two of them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/strategies/strategies.h"
#include "model/text/ranges.h"
#include "reports/atomic_file.h"
#include "reports/rows.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/sweep/store_query.h"

namespace commfuse::sim {

namespace {

constexpr std::int64_t most_limit = 1'000'000'000'000;

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

std::string cell_of(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    return fmt::format("{:.6g}", *number);
  }
  if (const auto* count = std::get_if<std::int64_t>(&value)) {
    return fmt::format("{}", *count);
  }
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? "-" : *text;
}

struct Cell {
  std::string text;
  bool is_text = true;  ///< Stands at the left; numbers stand at the right.
};

/// Columns as wide as their widest cell.
std::string aligned(const std::vector<std::string_view>& names, const std::vector<std::vector<Cell>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::size_t width = names[i].size();
    for (const std::vector<Cell>& row : rows) {
      width = std::max(width, row[i].text.size());
    }
    widths.push_back(width);
  }
  std::string text;
  const auto add = [&](std::size_t i, std::string_view cell, bool is_text) {
    const std::size_t blank = widths[i] - cell.size();
    text.append(is_text ? 0 : blank, ' ');
    text += cell;
    text.append(is_text ? blank : 0, ' ');
    if (i + 1 == names.size()) {
      text.erase(text.find_last_not_of(' ') + 1);
    }
    text += i + 1 == names.size() ? "\n" : "  ";
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    add(i, names[i], rows.empty() || rows.front()[i].is_text);
  }
  for (const std::vector<Cell>& row : rows) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      add(i, row[i].text, row[i].is_text);
    }
  }
  return text;
}

/// Where rows go: as they come in a format for programs, together in a table.
class RowWriter {
 public:
  RowWriter(std::string_view format, const std::string& out) : format_(format) {
    constexpr std::array<std::string_view, 4> formats{"table", "json", "jsonl", "csv"};
    require_word("--output", format, formats, "format");
    if (!out.empty()) {
      file_ = std::make_unique<reports::AtomicFile>(out);
    }
  }

  void begin(const std::vector<std::string>& names) {
    names_ = {names.begin(), names.end()};
    if (format_ == "csv") {
      write(reports::csv_line(names_));
    }
    write(format_ == "json" ? "[" : "");
  }

  void row(std::span<const Value> values) {
    ++count_;
    if (format_ == "csv") {
      write(reports::csv_line(values));
    } else if (format_ == "table") {
      std::vector<Cell>& cells = rows_.emplace_back();
      for (const Value& value : values) {
        cells.push_back({cell_of(value), std::holds_alternative<std::string>(value)});
      }
    } else {
      const std::string object = reports::json_object(names_, values);
      write(format_ == "jsonl" ? object + "\n" : (count_ == 1 ? "\n" : ",\n") + object);
    }
  }

  void end() {
    if (format_ == "table") {
      write(aligned(names_, rows_));
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
  std::vector<std::string_view> names_;
  std::vector<std::vector<Cell>> rows_;
  std::size_t count_ = 0;
};

/// What fits a terminal, where nothing is said.
std::vector<std::string> usual_columns(const StoreQuery& store) {
  return store.kind() == StoreKind::layers
             ? std::vector<std::string>{"point",    "model",       "hardware",   "ranks", "seq",
                                        "strategy", "makespan_us", "exposed_us", "mfu",   "status"}
             : std::vector<std::string>{
                   "point", "model", "gpus", "batch", "seq", "strategy", "time_ms", "tokens_per_second", "mfu"};
}

Query query_of(const ResultsRequest& request, const StoreQuery& store) {
  Query query{.where = request.where,
              .columns = words_in(request.columns),
              .sort_by = words_in(request.sort_by),
              .limit = request.limit};
  if (query.columns.empty() && request.format == "table") {
    query.columns = usual_columns(store);
  }
  return query;
}

/// `ask(take)` gives the names when it is through; rows come before, and need the names.
int print(const ResultsRequest& request, const std::vector<std::string>& names,
          const std::function<void(const TakeRow&)>& ask) {
  reports::require_no_input(request.out, std::array{request.file, request.other});
  RowWriter writer(request.format, request.out);
  bool begun = false;
  ask([&](std::span<const Value> values) {
    if (!std::exchange(begun, true)) {
      writer.begin(names);
    }
    writer.row(values);
  });
  if (!begun) {
    writer.begin(names);
  }
  writer.end();
  return static_cast<int>(std::min<std::size_t>(writer.count(), 1));
}

int show_results(const ResultsRequest& request) {
  const StoreQuery store(request.file, request.checks());
  const Query query = query_of(request, store);
  print(request, query.columns.empty() ? store.columns() : query.columns,
        [&](const TakeRow& take) { store.run(query, take); });
  return exit_code::done;
}

/// Limits that no implementation reaches.
std::vector<std::string> bounds() {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) {
    if (strategy.bound) {
      names.emplace_back(strategy.name);
    }
  }
  return names;
}

int show_best(const ResultsRequest& request) {
  const StoreQuery store(request.file, request.checks());
  BestQuery best{.by = request.by.empty() ? store.time_column() : request.by,
                 .per = request.per.empty() ? store.point_columns() : words_in(request.per),
                 .without = {},
                 .query = query_of(request, store)};
  const auto is_strategy = [](const std::string& name) { return name == "strategy"; };
  const bool leaves_out = !request.bounds && std::ranges::any_of(store.columns(), is_strategy) &&
                          std::ranges::none_of(best.per, is_strategy);
  if (leaves_out) {
    best.without = bounds();
  }
  const int any = print(request, best.query.columns.empty() ? store.columns() : best.query.columns,
                        [&](const TakeRow& take) { store.run(best, take); });
  if (any == 0 && leaves_out) {
    fmt::print(stderr, "no row wins; add --bounds to include bounds\n");
  }
  return exit_code::done;
}

int show_differences(const ResultsRequest& request) {
  StoreQuery store(request.file, request.checks());
  std::vector<std::string> names = store.asked();
  names.insert(names.end(), {"strategy", "before", "after", "ratio"});
  const std::string by = request.by.empty() ? store.time_column() : request.by;
  const int any = print(request, names, [&](const TakeRow& take) { store.differences(request.other, by, take); });
  return any == 0 ? exit_code::done : exit_code::gate_missed;
}

void add_output_flags(CLI::App& command, ResultsRequest& request) {
  command.add_option("-o,--output", request.format, "Format: table, json, jsonl or csv")
      ->type_name("FORMAT")
      ->capture_default_str();
  command.add_option("--out", request.out, "File to write instead of stdout")->type_name("PATH");
  command.add_flag("--verify", request.verify, "Check every row against its checksum first");
}

void add_query_flags(CLI::App& command, ResultsRequest& request) {
  command.add_option("FILE", request.file, "Store, or folder of a sweep")->required();
  command.add_option("--where", request.where, "SQL expression over columns that selects rows")
      ->type_name("EXPRESSION");
  command.add_option("--columns", request.columns, "Columns, comma-separated (default: some in a table, else all)")
      ->type_name("NAMES");
  command.add_option("--sort-by", request.sort_by, "Columns, comma-separated; -mfu sorts mfu descending")
      ->type_name("NAMES");
  command.add_option("--limit", request.limit, "Maximum number of rows")
      ->type_name("COUNT")
      ->check(CLI::Range(std::int64_t{0}, most_limit));
  add_output_flags(command, request);
}

}  // namespace

void add_results(CLI::App& app, int& status) {
  add_verb(app, "results", "Query the results of a sweep", [&status](CLI::App& command) {
    const auto request = std::make_shared<ResultsRequest>();
    add_query_flags(command, *request);
    command.footer(
        "Columns are those of docs/metrics.md, and the number of the point.\n\n"
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
        "Examples:\n"
        "  commfuse-sim best out/crossover\n"
        "  commfuse-sim best out/million --per model,ranks --by -mfu");
    command.callback([request, &status] { status = show_best(*request); });
  });
}

void add_diff(CLI::App& app, int& status) {
  add_verb(app, "diff", "Show what changed between two stores", [&status](CLI::App& command) {
    const auto request = std::make_shared<ResultsRequest>();
    command.add_option("A", request->file, "Store or sweep folder, before")->required();
    command.add_option("B", request->other, "Store or sweep folder, after")->required();
    command.add_option("--by", request->by, "Column to compare (default: the time)")->type_name("NAME");
    add_output_flags(command, *request);
    command.footer(
        "Matches rows by settings and strategy, not by number, so the sweeps may differ.\n"
        "Prints the largest change first; a row of only one store lacks the other's\n"
        "value. Exits with 4 if anything differs.\n\n"
        "Example:\n"
        "  commfuse-sim diff out/before out/after -o csv");
    command.callback([request, &status] { status = show_differences(*request); });
  });
}

}  // namespace commfuse::sim
