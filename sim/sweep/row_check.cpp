// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/row_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <variant>
#include <vector>

#include "model/config/bandwidth_choice.h"
#include "model/config/field.h"
#include "model/dtype.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

/// Columns that every row must have.
constexpr std::array<std::string_view, 7> needed_columns{"model", "hardware", "ranks", "seq",
                                                         "dtype", "strategy", "status"};
/// Largest time in microseconds: 2^53 ps, up to which doubles hold every picosecond.
constexpr double longest_us = 9007199254.740992;

/// The allowed values of a column.
struct Rule {
  bool is_needed = false;
  std::optional<Option> option{};  ///< the column's option
  bool is_bandwidth = false;       ///< the value is a bandwidth, written as users write it
  std::int64_t least = 0;          ///< for counts
  std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  double shortest = std::numeric_limits<double>::lowest();  ///< for numbers
  double longest = std::numeric_limits<double>::max();
};

/// Sets the range of numbers; times of parts may be negative.
void put_range(std::string_view column, Rule& rule) {
  if (column.ends_with("_us")) {
    rule.longest = longest_us;
    rule.shortest = -longest_us;
  } else if (column.starts_with("mfu")) {
    rule.shortest = 0.0;
    rule.longest = max_mfu;
  } else if (column == "win_probability" || column.ends_with("_share") || column.starts_with("p99_path_")) {
    rule.shortest = 0.0;
    rule.longest = 1.0;
  } else if (column == "makespan_error" || column.ends_with("_rate_gb_s")) {
    rule.shortest = 0.0;
  }
}

Rule rule_of(std::string_view column) {
  Rule rule{.is_needed = std::find(needed_columns.begin(), needed_columns.end(), column) != needed_columns.end()};
  rule.option = option_named(column);
  const Field* const field = find_field(!rule.option ? std::string(column) : fmt::format("strategy.{}", column));
  if (column == "seed") {
    rule.least = std::numeric_limits<std::int64_t>::min();  // any 64-bit integer
  } else if (column == "critical_rank") {
    rule.largest = std::numeric_limits<std::int32_t>::max();
  } else if (field != nullptr && field->type == FieldType::bandwidth) {
    rule.is_bandwidth = true;
  } else if (field != nullptr && field->type == FieldType::count && column != "samples") {
    rule.least = field->least;
    rule.largest = field->most;
  }
  put_range(column, rule);
  return rule;
}

/// Returns the rules by column.
std::span<const Rule> rules() {
  static const std::vector<Rule> list = [] {
    std::vector<Rule> by_column;
    for (const ResultColumn& column : result_columns()) {
      by_column.push_back(rule_of(column.name));
    }
    return by_column;
  }();
  return list;
}

template <class Shown>
[[noreturn]] void refuse_range(std::string_view name, const Shown& value) {
  throw RowMisfit(fmt::format("{} is {}, which is out of range", name, value));
}

bool has_type(const Value& value, ColumnType type) {
  switch (type) {
    case ColumnType::text: return std::holds_alternative<std::string>(value);
    case ColumnType::count: return std::holds_alternative<std::int64_t>(value);
    case ColumnType::number: return std::holds_alternative<double>(value);
    case ColumnType::flag: break;  // layers have none
  }
  return false;
}

void require_known(std::string_view name, const Rule& rule, const std::string& text) {
  const auto is_word_of = [&](Option option) {
    const std::vector<std::string_view> words = words_of(option);
    return std::find(words.begin(), words.end(), text) != words.end();
  };
  if ((name == "dtype" && !dtype_named(text)) || (rule.option && !is_word_of(*rule.option)) ||
      (rule.is_bandwidth && !parse_bandwidth_choice(text))) {
    throw RowMisfit(fmt::format("{} is {}, an unknown value", name, in_quotes(text.substr(0, 40))));
  }
}

void require_within(std::string_view name, const Rule& rule, std::int64_t count) {
  if (count < rule.least || count > rule.largest) {
    refuse_range(name, count);
  }
}

void require_within(std::string_view name, const Rule& rule, double number) {
  if (!std::isfinite(number) || number < rule.shortest || number > rule.longest) {
    refuse_range(name, number);
  }
}

void require_value(const ResultColumn& column, const Rule& rule, const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) {
    if (rule.is_needed) {
      throw RowMisfit(fmt::format("the row has no {}", column.name));
    }
    return;
  }
  if (!has_type(value, column.type)) {
    throw RowMisfit(fmt::format("{} is not {}", column.name, type_in_words(column.type)));
  }
  if (const auto* const text = std::get_if<std::string>(&value)) {
    require_plain(column.name, *text);
    require_known(column.name, rule, *text);
  } else if (const auto* const count = std::get_if<std::int64_t>(&value)) {
    require_within(column.name, rule, *count);
  } else {
    require_within(column.name, rule, std::get<double>(value));
  }
}

}  // namespace

void require_plain(std::string_view name, std::string_view text) {
  const bool has_lines = name == "reason" || name == "warnings";
  if (has_control_character(text, has_lines ? "\t\n" : "\t")) {
    throw RowMisfit(fmt::format("{} has control characters", name));
  }
  if (!is_utf8(text)) {
    throw RowMisfit(fmt::format("{} is not UTF-8", name));
  }
}

bool may_name_column(std::string_view name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  return !name.empty() && name.find_first_not_of(allowed) == std::string_view::npos;
}

std::string_view type_in_words(ColumnType type) {
  switch (type) {
    case ColumnType::text: return "text";
    case ColumnType::count: return "a whole number";
    case ColumnType::flag: return "true or false";
    case ColumnType::number: break;
  }
  return "a number";
}

const ResultRow& RowReader::read(std::span<const Value> values) {
  const std::span<const ResultColumn> columns = result_columns();
  if (values.size() != columns.size()) {
    throw RowMisfit(fmt::format("the row has {} values, not {}", values.size(), columns.size()));
  }
  const bool is_first = last_.empty();
  changed_.clear();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (is_first || values[i] != last_[i]) {
      require_value(columns[i], rules()[i], values[i]);
      changed_.push_back(i);
    }
  }
  // A value that has disappeared would leave its old effect on the row.
  const bool rebuilds = is_first || std::ranges::any_of(changed_, [&](std::size_t i) {
                          return std::holds_alternative<std::monostate>(values[i]);
                        });
  rebuilds ? void(row_ = row_of(values)) : put_changed(values);
  last_.resize(values.size());
  for (const std::size_t i : changed_) {
    last_[i] = values[i];
  }
  const Breakdown& times = row_.analysis.critical;
  if (row_.feasible() &&
      times.makespan != times.compute + times.slicing + times.stretch + times.local + times.exposed) {
    throw RowMisfit("makespan_us is not the sum of compute, slicing, stretch, local and exposed");
  }
  return row_;
}

void RowReader::put_changed(std::span<const Value> values) {
  bool is_other_schedule = false;
  for (const std::size_t i : changed_) {
    const ResultColumn& column = result_columns()[i];
    if (column.put != nullptr) {
      column.put(row_, values[i]);
      is_other_schedule = is_other_schedule || column.type == ColumnType::text || rules()[i].option.has_value();
    }
  }
  complete_times(row_);
  if (is_other_schedule) {
    complete_schedule(row_);
  }
}

ResultRow checked_row(std::span<const Value> values) { return RowReader().read(values); }

}  // namespace commfuse
