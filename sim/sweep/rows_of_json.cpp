// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/rows_of_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/config/suggest.h"
#include "model/config_error.h"
#include "model/json_budget.h"
#include "sim/sweep/row_check.h"

namespace commfuse {

namespace {

using Json = nlohmann::ordered_json;

/// Where the rows of a JSON file stand, for messages.
struct Place {
  std::string file;
  std::size_t line = 0;
};

[[noreturn]] void refuse(const Place& place, const std::string& sentence) {
  throw ConfigError(fmt::format("{}:{}: {}", place.file, place.line, sentence));
}

Value value_of(const ResultColumn& column, const Json& json, const Place& place) {
  if (json.is_null()) {
    return {};
  }
  if (column.type == ColumnType::text && json.is_string()) {
    return json.get<std::string>();
  }
  if (const auto whole = whole_number(json); column.type == ColumnType::count && whole) {
    return *whole;
  }
  if (column.type == ColumnType::number && json.is_number()) {
    return json.get<double>();
  }
  refuse(place, fmt::format("{} is {}, which is no {}; write the results anew", column.name, json.dump().substr(0, 40),
                            type_in_words(column.type)));
}

ResultRow row_in(const Json& json, const Place& place) {
  const Json schema = json.is_object() ? json.value("schema", Json{}) : Json{};
  if (schema != result_schema) {
    refuse(place,
           fmt::format("this is no row of {} but {}; write one with commfuse-sim run -o jsonl or sweep", result_schema,
                       schema.is_string() ? in_quotes(schema.get<std::string>()) : "something else"));
  }
  std::vector<Value> values;
  for (const ResultColumn& column : result_columns()) {
    const auto found = json.find(std::string{column.name});
    values.push_back(found == json.end() ? Value{} : value_of(column, *found, place));
  }
  try {
    return checked_row(values);
  } catch (const RowMisfit& misfit) {
    refuse(place, fmt::format("{}; write the results anew", misfit.what()));
  }
}

constexpr std::string_view no_rows = "this is no JSON; give the store of a sweep, or what -o json or jsonl writes";

/// A line of JSON Lines.
Json parsed_line(std::string_view text, const Place& place) {
  try {
    return parse_json<Json>(text, fmt::format("{}:{}", place.file, place.line));
  } catch (const Json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}:{}: {}", place.file, place.line, error.byte, no_rows));
  } catch (const Json::exception&) {
    refuse(place, "a number is out of range; write the results anew");
  }
}

/// The objects of a list, each of which is looked at and forgotten.
std::vector<ResultRow> rows_in_list(const std::string& text, const std::string& file) {
  std::vector<ResultRow> rows;
  const auto take = [&](Json::parse_event_t event, const Json& parsed) {
    const Place place{file, rows.size() + 2};  // An object a line, below the bracket.
    if (event != Json::parse_event_t::object_end) {
      refuse(place, "this is no row; write the results anew");
    }
    rows.push_back(row_in(parsed, place));
  };
  try {
    take_and_forget<Json>(file, 1, take, text);
  } catch (const Json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: {}", file, line_and_column(text, error.byte), no_rows));
  } catch (const Json::exception&) {
    refuse({file, rows.size() + 2}, "a number is out of range; write the results anew");
  }
  return rows;
}

}  // namespace

std::vector<ResultRow> rows_of_json(const std::string& text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '[') {
    return rows_in_list(text, file);
  }
  std::vector<ResultRow> rows;
  Place place{file, 0};
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++place.line;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      rows.push_back(row_in(parsed_line(line, place), place));
    }
  }
  return rows;
}

}  // namespace commfuse
