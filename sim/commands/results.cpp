// SPDX-License-Identifier: Apache-2.0
// commfuse-sim results, best and diff: query a store, find the rows that win, and compare two stores.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
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

void append_cell(const Value& value, std::string& to) {
  if (const auto* number = std::get_if<double>(&value)) {
    fmt::format_to(std::back_inserter(to), "{:.6g}", *number);
  } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
    fmt::format_to(std::back_inserter(to), "{}", *count);
  } else {
    const auto* text = std::get_if<std::string>(&value);
    to += text == nullptr ? "-" : *text;
  }
}

/// A table whose columns are as wide as their widest cell. The texts of all cells lie one behind the other in one
/// string, because there may be millions.
class AlignedTable {
 public:
  void begin(const std::vector<std::string_view>& names) {
    names_ = names;
    for (const std::string_view name : names) {
      widths_.push_back(name.size());
    }
  }

  void row(std::span<const Value> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t before = text_.size();
      append_cell(values[i], text_);
      cells_.push_back(
          {static_cast<std::uint32_t>(text_.size() - before), std::holds_alternative<std::string>(values[i])});
      widths_[i] = std::max<std::size_t>(widths_[i], cells_.back().size);
    }
  }

  /// Calls write(lines) for batches of lines, one batch after another.
  template <class Write>
  void write(const Write& write) const {
    constexpr std::size_t batch_bytes = 1 << 16;
    std::string lines;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      add(i, names_[i], cells_.empty() || cells_[i].is_text, lines);
    }
    std::string_view rest = text_;
    for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
      add(cell % names_.size(), rest.substr(0, cells_[cell].size), cells_[cell].is_text, lines);
      rest.remove_prefix(cells_[cell].size);
      if (lines.size() >= batch_bytes && lines.back() == '\n') {
        write(lines);
        lines.clear();
      }
    }
    write(lines);
  }

 private:
  struct Cell {
    std::uint32_t size = 0;
    bool is_text = true;  ///< True for text, which is flush left; numbers are flush right.
  };

  void add(std::size_t column, std::string_view cell, bool is_text, std::string& lines) const {
    const std::size_t blank = widths_[column] - cell.size();
    lines.append(is_text ? 0 : blank, ' ');
    lines += cell;
    lines.append(is_text ? blank : 0, ' ');
    if (column + 1 < names_.size()) {
      lines += "  ";
    } else {
      lines.erase(lines.find_last_not_of(' ') + 1);
      lines += '\n';
    }
  }

  std::vector<std::string_view> names_;
  std::vector<std::size_t> widths_;
  std::string text_;
  std::vector<Cell> cells_;
};

/// Writes rows as they come in formats for programs, and all together in a table.
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
    table_.begin(names_);
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
      table_.row(values);
    } else {
      const std::string object = reports::json_object(names_, values);
      write(format_ == "jsonl" ? object + "\n" : (count_ == 1 ? "\n" : ",\n") + object);
    }
  }

  void end() {
    if (format_ == "table" && (count_ > 0 || file_)) {  // Without rows a sentence on stderr says so.
      table_.write([&](const std::string& lines) { write(lines); });
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
  AlignedTable table_;
  std::size_t count_ = 0;
};

/// Returns the columns that are shown by default: those that fit a terminal, as far as the store has them.
std::vector<std::string> usual_columns(const StoreQuery& store) {
  std::vector<std::string> names =
      store.has_layers() && store.has_models()
          ? std::vector<std::string>{"model", "hardware", "scope", "gpus", "ranks", "seq", "strategy", "time_us", "mfu"}
      : store.has_layers()
          ? std::vector<std::string>{"point",    "model",       "hardware",   "ranks", "seq",
                                     "strategy", "makespan_us", "exposed_us", "mfu",   "status"}
          : std::vector<std::string>{
                "point", "model", "gpus", "batch", "seq", "strategy", "time_ms", "tokens_per_second", "mfu"};
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(store.columns(), name) == store.columns().end();
  });
  return names;
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

/// Prints rows. `ask(take)` yields the names only when it is through, but rows come before and need the names.
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
  const int any = print(request, query.columns.empty() ? store.columns() : query.columns,
                        [&](const TakeRow& take) { store.run(query, take); });
  if (any == 0) {
    fmt::print(stderr, "no rows{}\n", request.where.empty() ? "" : "; --where matches none");
  }
  return exit_code::done;
}

/// Returns the limits that no implementation reaches.
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
    best.without_bounds = std::ranges::find(store.columns(), "bound") != store.columns().end();
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
  const StoreQuery other(request.other, request.checks());
  const std::string by = request.by.empty() ? store.time_column(other) : request.by;
  const int any =
      print(request, store.difference_columns(other), [&](const TakeRow& take) { store.differences(other, by, take); });
  if (any == 0) {  // On stderr, so that programs that read rows are not disturbed.
    fmt::print(stderr, "no differences in {}\n", by);
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
    command.add_option("A", request->file, "Sweep folder, store, JSON or JSON Lines, before")->required();
    command.add_option("B", request->other, "Sweep folder, store, JSON or JSON Lines, after")->required();
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
