// SPDX-License-Identifier: Apache-2.0
#include "model/record/result_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <variant>
#include <vector>

#include "model/config/suggest.h"
#include "model/dtype.h"

namespace commfuse {

namespace {

/// Columns that a row cannot do without.
constexpr std::array<std::string_view, 7> needed{"model", "hardware", "ranks", "seq", "dtype", "strategy", "status"};
/// Of times in microseconds: 2^53 ps, to which doubles hold every picosecond.
constexpr double longest_us = 9007199254.740992;

bool is_there(const Value& value) { return !std::holds_alternative<std::monostate>(value); }

bool has_type(const Value& value, ColumnType type) {
  switch (type) {
    case ColumnType::text: return std::holds_alternative<std::string>(value);
    case ColumnType::count: return std::holds_alternative<std::int64_t>(value);
    case ColumnType::number: return std::holds_alternative<double>(value);
  }
  return false;
}

std::string_view type_in_words(ColumnType type) {
  switch (type) {
    case ColumnType::text: return "text";
    case ColumnType::count: return "whole number";
    case ColumnType::number: break;
  }
  return "number";
}

const Option* option_of(std::string_view column) {
  const auto* const found =
      std::find_if(all_options.begin(), all_options.end(), [&](Option option) { return name_of(option) == column; });
  return found == all_options.end() ? nullptr : found;
}

std::string misfit_of_number(std::string_view name, double number) {
  const bool is_time = name.ends_with("_us");
  if (!std::isfinite(number) || (is_time && std::abs(number) > longest_us)) {
    return fmt::format("{} is {}, which is out of range", name, number);
  }
  return {};
}

std::string misfit_of_count(std::string_view name, std::int64_t count) {
  const bool is_small = name == "critical_rank" || option_of(name) != nullptr;
  if (name != "seed" && (count < 0 || (is_small && count > std::numeric_limits<std::int32_t>::max()))) {
    return fmt::format("{} is {}, which is out of range", name, count);
  }
  return {};
}

std::string misfit_of_text(std::string_view name, const std::string& text) {
  const auto unknown = [&] {
    return fmt::format("{} is {}, which is none that is known", name, in_quotes(text.substr(0, 40)));
  };
  if (name == "dtype" && !dtype_named(text)) {
    return unknown();
  }
  if (const Option* const option = option_of(name); option != nullptr) {
    const std::vector<std::string_view> words = words_of(*option);
    return std::find(words.begin(), words.end(), text) == words.end() ? unknown() : std::string{};
  }
  return {};
}

std::string misfit_of_value(const ResultColumn& column, const Value& value) {
  if (!is_there(value)) {
    const bool is_needed = std::find(needed.begin(), needed.end(), column.name) != needed.end();
    return is_needed ? fmt::format("the row has no {}", column.name) : std::string{};
  }
  if (!has_type(value, column.type)) {
    return fmt::format("{} is no {}", column.name, type_in_words(column.type));
  }
  switch (column.type) {
    case ColumnType::text: return misfit_of_text(column.name, std::get<std::string>(value));
    case ColumnType::count: return misfit_of_count(column.name, std::get<std::int64_t>(value));
    case ColumnType::number: break;
  }
  return misfit_of_number(column.name, std::get<double>(value));
}

}  // namespace

std::string misfit_of(std::span<const Value> values) {
  const std::span<const ResultColumn> columns = result_columns();
  if (values.size() != columns.size()) {
    return fmt::format("the row has {} values, not {}", values.size(), columns.size());
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (std::string misfit = misfit_of_value(columns[i], values[i]); !misfit.empty()) {
      return misfit;
    }
  }
  const ResultRow row = row_of(values);
  const Breakdown& all = row.analysis.critical;
  if (row.feasible() && all.makespan != all.compute + all.slicing + all.stretch + all.local + all.exposed) {
    return "makespan_us is not the sum of compute, slicing, stretch, local and exposed";
  }
  return {};
}

}  // namespace commfuse
