// SPDX-License-Identifier: Apache-2.0
#include "reports/rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace commfuse::reports {

namespace {

std::string object(const ResultRow& row) {
  nlohmann::ordered_json object;
  for (const ResultColumn& column : result_columns()) {
    nlohmann::ordered_json& field = object[std::string{column.name}];
    std::visit(
        [&](const auto& value) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
            field = value;
          }
        },
        column.value(row));
  }
  return object.dump();
}

std::string cell(const Value& value) {
  struct Writer {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return csv_text(text); }
  };
  return std::visit(Writer{}, value);
}

}  // namespace

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

std::string to_json(std::span<const ResultRow> rows) {
  std::string text = "[";
  for (const ResultRow& row : rows) {
    text += fmt::format("{}\n{}", &row == rows.data() ? "" : ",", object(row));
  }
  return text + "\n]\n";
}

std::string to_json_lines(std::span<const ResultRow> rows) {
  std::string text;
  for (const ResultRow& row : rows) {
    text += object(row) + "\n";
  }
  return text;
}

std::string to_csv(std::span<const ResultRow> rows) {
  std::string text;
  for (const ResultColumn& column : result_columns()) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", column.name);
  }
  text += "\r\n";
  for (const ResultRow& row : rows) {
    bool first = true;
    for (const ResultColumn& column : result_columns()) {
      text += fmt::format("{}{}", first ? "" : ",", cell(column.value(row)));
      first = false;
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace commfuse::reports
