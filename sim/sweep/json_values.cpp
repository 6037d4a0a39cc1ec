// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/json_values.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "model/json_budget.h"
#include "model/record/columns.h"
#include "sim/sweep/row_check.h"

namespace commfuse {

namespace {

using Json = nlohmann::ordered_json;

std::optional<Value> typed(ColumnType type, const Json& json) {
  const std::optional<std::int64_t> whole = whole_number(json);
  switch (type) {
    case ColumnType::text: return json.is_string() ? std::optional<Value>(json.get<std::string>()) : std::nullopt;
    case ColumnType::count: return whole ? std::optional<Value>(*whole) : std::nullopt;
    case ColumnType::number: return json.is_number() ? std::optional<Value>(json.get<double>()) : std::nullopt;
    case ColumnType::flag: break;
  }
  if (json.is_boolean()) {
    return Value{std::int64_t{json.get<bool>()}};
  }
  return whole && (*whole == 0 || *whole == 1) ? std::optional<Value>(*whole) : std::nullopt;  // SQL has no booleans
}

/// Returns the value as JSON. A long value is cut after a whole character.
std::string in_short(const Json& json) {
  constexpr std::size_t longest = 40;
  std::string text = json.dump();
  if (text.size() <= longest) {
    return text;
  }
  std::size_t end = longest;
  while ((static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {  // within the UTF-8 bytes of a character
    --end;
  }
  return text.substr(0, end) + "...";
}

}  // namespace

Value value_in(std::string_view column, ColumnType type, const Json& json) {
  if (json.is_null()) {
    return {};
  }
  if (std::optional<Value> value = typed(type, json)) {
    return *std::move(value);
  }
  throw RowMisfit(fmt::format("{} is {}, which is not {}", column, in_short(json), type_in_words(type)));
}

StepRow step_row_of(const Json& object) {
  StepRow row;
  for (const auto& [name, json] : object.items()) {
    const Column* const column = find_column(name);
    if (column == nullptr || !column->of_models) {
      continue;
    }
    const Value value = value_in(column->name, column->type, json);
    if (const auto* text = std::get_if<std::string>(&value)) {
      row.add(column->name, *text);
    } else if (const auto* number = std::get_if<double>(&value)) {
      row.add(column->name, *number);
    } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
      row.add(column->name, column->type == ColumnType::flag ? StepRow::Value{*count != 0} : StepRow::Value{*count});
    }
  }
  require_fit(row);
  return row;
}

}  // namespace commfuse
