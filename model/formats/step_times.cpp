// SPDX-License-Identifier: Apache-2.0
#include "model/formats/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "model/config_error.h"
#include "model/formats/json_guard.h"
#include "model/formats/measured_time.h"
#include "model/json_budget.h"
#include "model/text/blanks.h"
#include "model/text/counted.h"
#include "model/text/files.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

constexpr std::size_t max_rows = 10'000'000;
constexpr std::size_t max_columns = 1000;
constexpr std::int64_t max_number = std::int64_t{1} << 40U;

struct Unit {
  std::string_view suffix;
  double us = 1.0;
};
constexpr std::array units{Unit{"_us", 1.0}, Unit{"_ms", 1e3}, Unit{"_s", 1e6}};

/// Value that a CSV column or a JSON key holds, and its unit in microseconds.
struct Column {
  enum class Kind { none, rank, step, time, compute, communication, send, idle, host } kind = Kind::none;
  double us = 1.0;
  std::string name;
};

Column column_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Column::Kind>, 5> times{
      {{"time", Column::Kind::time},
       {"compute", Column::Kind::compute},
       {"communication", Column::Kind::communication},
       {"send", Column::Kind::send},
       {"idle", Column::Kind::idle}}};
  Column column{.name = std::string(name)};
  if (name == "rank" || name == "step" || name == "host") {
    column.kind = name == "rank" ? Column::Kind::rank : name == "step" ? Column::Kind::step : Column::Kind::host;
    return column;
  }
  for (const auto& [stem, kind] : times) {
    for (const Unit& unit : units) {
      if (name.starts_with(stem) && name.substr(stem.size()) == unit.suffix) {
        column.kind = kind;
        column.us = unit.us;
      }
    }
  }
  return column;
}

bool has_needed(const std::vector<Column>& columns) {
  const auto has = [&](Column::Kind kind) {
    return std::any_of(columns.begin(), columns.end(), [&](const Column& column) { return column.kind == kind; });
  };
  return has(Column::Kind::rank) && has(Column::Kind::step) && has(Column::Kind::time);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (bool more = true; more && cells.size() <= max_columns;) {
    const std::size_t comma = line.find(',');
    std::string_view cell = trimmed(line.substr(0, comma));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
      cell = cell.substr(1, cell.size() - 2);
    }
    cells.push_back(cell);
    more = comma != std::string_view::npos;
    line = more ? line.substr(comma + 1) : "";
  }
  return cells;
}

/// Removes lines from the front of `text` up to the next line that is neither empty nor a comment, and returns that
/// line; sets `number` to its line number, counted from 1.
std::string_view next_line(std::string_view& text, std::size_t& number) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    ++number;
    if (!line.empty() && line.front() != '#') {
      return line;
    }
  }
  return "";
}

/// Builds the steps of a job, value by value. Throws ConfigError "place: ..." for a wrong value.
class StepBuilder {
 public:
  explicit StepBuilder(JobSteps& job) : job_(job) {}

  void begin() {
    step_ = {};
    host_.clear();
  }
  void put(const Column& column, std::string_view text, const std::string& place) {
    switch (column.kind) {
      case Column::Kind::none: return;
      case Column::Kind::host: host_ = text; return;
      case Column::Kind::rank: step_.rank = whole(text, place); return;
      case Column::Kind::step: step_.step = whole(text, place); return;
      default: put_time(column, text, place); return;
    }
  }
  void end(const std::string& place) {
    if (!seen_.insert({step_.step, step_.rank}).second) {
      throw ConfigError(fmt::format("{}: rank {} appears twice in step {}; give each rank once per step", place,
                                    step_.rank, step_.step));
    }
    if (job_.steps.size() >= max_rows) {
      throw ConfigError(fmt::format("{}: more than {} rows; give fewer steps", place, max_rows));
    }
    job_.steps.push_back(step_);
    if (!host_.empty()) {
      job_.hosts[step_.rank] = host_;
    }
  }

 private:
  static std::int64_t whole(std::string_view text, const std::string& place) {
    const std::optional<std::int64_t> number = parse_integer(text);
    if (!number || *number < 0 || *number > max_number) {
      throw ConfigError(fmt::format("{}: {} is not a whole number from 0 to {}", place, in_quotes(text), max_number));
    }
    return *number;
  }
  void put_time(const Column& column, std::string_view text, const std::string& place) {
    const std::optional<double> number = parse_number(text);
    const double us = number.value_or(-1.0) * column.us;
    const bool is_step = column.kind == Column::Kind::time;
    if (number && us > longest_measured_us) {
      throw ConfigError(fmt::format("{}: {} is longer than {:g} s; correct the time, or the unit in its name", place,
                                    in_quotes(text), longest_measured_us / 1e6));
    }
    if (!(us >= 0.0) || (is_step && !is_measured_time(us))) {
      throw ConfigError(fmt::format("{}: {} is not a time; write a number of {}", place, in_quotes(text),
                                    is_step ? "more than 0" : "0 or more"));
    }
    switch (column.kind) {
      case Column::Kind::time: step_.time_us = us; return;
      case Column::Kind::compute: step_.compute_us = us; return;
      case Column::Kind::communication: step_.communication_us = us; return;
      case Column::Kind::send: step_.send_us = us; return;
      default: step_.idle_us = us; return;
    }
  }

  JobSteps& job_;
  StepTimes step_;
  std::string host_;
  std::set<std::pair<std::int64_t, std::int64_t>> seen_;
};

std::vector<Column> columns_of(const std::vector<std::string_view>& names, const std::string& path, JobSteps& job) {
  std::vector<Column> columns;
  for (const std::string_view name : names) {
    Column column = column_of(name);
    if (column.kind == Column::Kind::none) {
      job.notes.push_back(fmt::format("{}: column {} is not used", path, in_quotes(name)));
    } else if (const auto same = std::find_if(columns.begin(), columns.end(),
                                              [&](const Column& other) { return other.kind == column.kind; });
               same != columns.end()) {
      throw ConfigError(fmt::format("{}: columns {} and {} have the same meaning; keep one of them", path,
                                    in_quotes(same->name), in_quotes(name)));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

void read_csv(std::string_view text, const std::string& path, JobSteps& job) {
  std::size_t line = 0;
  const std::vector<Column> columns = columns_of(cells_of(next_line(text, line)), path, job);
  StepBuilder builder(job);
  for (std::string_view row = next_line(text, line); !row.empty(); row = next_line(text, line)) {
    const std::vector<std::string_view> cells = cells_of(row);
    const std::string place = fmt::format("{}:{}", path, line);
    if (cells.size() != columns.size()) {
      throw ConfigError(fmt::format("{}: has {}, but the header has {}; give the whole file", place,
                                    counted(cells.size(), "cell"), columns.size()));
    }
    builder.begin();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      builder.put(columns[i], cells[i], fmt::format("{}: {}", place, columns[i].name));
    }
    builder.end(place);
  }
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// Reads JSON objects. Each must have the known keys of the first one, as CSV rows have the columns of their header.
class ObjectReader {
 public:
  ObjectReader(const std::string& path, JobSteps& job) : path_(path), job_(job), builder_(job) {}

  void read(const Json& object, const std::string& place) {
    if (!object.is_object()) {
      throw ConfigError(fmt::format("{}: {}: is not an object; write rank, step and time_us", path_, place));
    }
    if (columns_.empty()) {
      std::vector<std::string_view> names;
      for (const auto& [key, value] : object.items()) {
        names.push_back(key);
      }
      columns_ = columns_of(names, path_, job_);
    }
    builder_.begin();
    std::size_t used = 0;
    for (const Column& column : columns_) {
      const auto value = object.find(column.name);
      if (value == object.end() && column.kind != Column::Kind::none) {
        throw ConfigError(fmt::format("{}: {}: has no {}, which the first object has; give the whole file", path_,
                                      place, in_quotes(column.name)));
      }
      if (value == object.end()) {
        continue;
      }
      ++used;
      if (column.kind != Column::Kind::host || !value->is_null()) {
        builder_.put(column, text_of(*value), fmt::format("{}: {}.{}", path_, place, column.name));
      }
    }
    builder_.end(fmt::format("{}: {}", path_, place));
    if (object.size() > used) {
      note_new_keys(object, place);
    }
  }

 private:
  /// Notes every key that would hold a value, but that the first object lacks; once per key.
  void note_new_keys(const Json& object, const std::string& place) {
    for (const auto& [key, value] : object.items()) {
      const bool is_new = std::none_of(columns_.begin(), columns_.end(),
                                       [&name = key](const Column& column) { return column.name == name; });
      if (is_new && column_of(key).kind != Column::Kind::none && noted_.insert(key).second) {
        job_.notes.push_back(
            fmt::format("{}: {}: key {} is not used, because the first object lacks it", path_, place, in_quotes(key)));
      }
    }
  }

  const std::string& path_;
  JobSteps& job_;
  StepBuilder builder_;
  std::vector<Column> columns_;
  std::set<std::string> noted_;
};

void read_json(std::string_view text, const std::string& path, JobSteps& job) {
  constexpr JsonRules rules{.twice = "keep one of them"};
  ObjectReader reader(path, job);
  try {
    if (text[text.find_first_not_of(" \t\r\n")] == '[') {
      std::size_t index = 0;
      const auto take = [&](Json::parse_event_t, const Json& object) {
        reader.read(object, fmt::format("[{}]", index++));
      };
      take_and_forget<Json>(path, 1, take, text);
      guard_json(text, path, rules);
      return;
    }
    std::size_t line = 0;
    for (std::string_view row = next_line(text, line); !row.empty(); row = next_line(text, line)) {
      reader.read(parse_json<Json>(row, path), fmt::format("line {}", line));
      guard_json(row, fmt::format("{}: line {}", path, line), rules);
    }
  } catch (const Json::exception&) {
    throw ConfigError(
        fmt::format("{}: is neither a JSON list of objects nor one JSON object per line; give the whole file", path));
  }
}

/// Returns the keys of the JSON object that begins `text`, without those of objects inside it. The text may end early.
std::vector<std::string_view> first_keys(std::string_view text) {
  std::vector<std::string_view> keys;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      const std::size_t begin = ++i;
      while (i < text.size() && text[i] != '"') {
        i += text[i] == '\\' ? 2 : 1;
      }
      const std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
      if (depth == 1 && next != std::string_view::npos && text[next] == ':') {
        keys.push_back(text.substr(begin, i - begin));
      }
    } else if (text[i] == '{' || text[i] == '[') {
      ++depth;
    } else if ((text[i] == '}' || text[i] == ']') && --depth == 0) {
      break;
    }
  }
  return keys;
}

/// Returns the columns of a CSV header, or the keys of the first JSON object.
std::vector<Column> first_columns(std::string_view text) {
  std::vector<Column> columns;
  const std::size_t begin = text.find_first_not_of(" \t\r\n[");
  if (begin != std::string_view::npos && text[begin] == '{') {
    for (const std::string_view key : first_keys(text.substr(begin))) {
      columns.push_back(column_of(key));
    }
    return columns;
  }
  std::size_t line = 0;
  for (const std::string_view cell : cells_of(next_line(text, line))) {
    columns.push_back(column_of(cell));
  }
  return columns;
}

}  // namespace

bool is_step_times(std::string_view text) { return has_needed(first_columns(without_byte_order_mark(text))); }

JobSteps read_step_times(std::string_view text, const std::string& path) {
  text = without_byte_order_mark(text);
  if (!has_needed(first_columns(text))) {
    throw ConfigError(
        fmt::format("{}: has no columns rank, step and time_us, time_ms or time_s; add a header with them", path));
  }
  JobSteps job;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_json = text[begin] == '[' || text[begin] == '{';
  if (is_json) {
    read_json(text, path, job);
  } else {
    read_csv(text, path, job);
  }
  if (job.steps.empty()) {
    throw ConfigError(fmt::format("{}: has a header but no steps; give the whole file", path));
  }
  return job;
}

}  // namespace commfuse
