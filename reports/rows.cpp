// SPDX-License-Identifier: Apache-2.0
#include "reports/rows.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <variant>

#include "reports/json_rows.h"

namespace commfuse::reports {

namespace {

std::string row_object(const ResultRow& row) { return json_object(column_names(), values_of(row)); }

std::string cell(const Value& value) {
  struct Writer {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return csv_text(text); }
  };
  return std::visit(Writer{}, value);
}

/// Returns the value of a flag; nothing for an absent value and for other columns.
std::optional<bool> flag_at(std::size_t index, std::span<const Value> values, const std::vector<bool>& are_flags) {
  const auto* const count = std::get_if<std::int64_t>(&values[index]);
  const bool is_flag = index < are_flags.size() && are_flags[index];
  return is_flag && count != nullptr ? std::optional(*count != 0) : std::nullopt;
}

bool is_number(std::string_view text) {
  text.remove_prefix(text.starts_with('+') ? 1 : 0);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Returns whether a spreadsheet would take the text for a formula, which may even send data to a server.
bool is_formula(std::string_view text) {
  constexpr std::string_view begins = "=+-@\t\r";
  return text.size() > 1 && begins.find(text.front()) != std::string_view::npos && !is_number(text);
}

std::string object_with_verdict(const ResultRow& row, const std::string& verdict) {
  std::vector<std::string_view> names = column_names();
  std::vector<Value> values = values_of(row);
  names.emplace_back("verdict");
  values.push_back(verdict.empty() ? Value{} : Value{verdict});
  return json_object(names, values);
}

}  // namespace

std::string csv_text(const std::string& cell) {
  std::string text = is_formula(cell) ? fmt::format("'{}", cell) : cell;
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

std::string to_json(std::span<const ResultRow> rows) { return json_array(rows, row_object); }
std::string to_json_lines(std::span<const ResultRow> rows) { return json_lines(rows, row_object); }

std::string to_json(std::span<const ResultRow> rows, std::span<const std::string> verdicts) {
  return json_array(rows, [&](const ResultRow& row) {
    return object_with_verdict(row, verdicts[static_cast<std::size_t>(&row - rows.data())]);
  });
}
std::string to_json_lines(std::span<const ResultRow> rows, std::span<const std::string> verdicts) {
  return json_lines(rows, [&](const ResultRow& row) {
    return object_with_verdict(row, verdicts[static_cast<std::size_t>(&row - rows.data())]);
  });
}

std::string to_csv(std::span<const ResultRow> rows) {
  std::string text = csv_line(column_names());
  for (const ResultRow& row : rows) {
    text += csv_line(values_of(row));
  }
  return text;
}

std::vector<std::string_view> column_names() {
  std::vector<std::string_view> names;
  for (const ResultColumn& column : result_columns()) {
    names.push_back(column.name);
  }
  return names;
}

std::string csv_line(std::span<const std::string_view> names) { return fmt::format("{}\r\n", fmt::join(names, ",")); }

std::string csv_line(std::span<const Value> values, const std::vector<bool>& are_flags) {
  std::string line;
  for (std::size_t i = 0; i < values.size(); ++i) {
    line += i == 0 ? "" : ",";
    const std::optional<bool> flag = flag_at(i, values, are_flags);
    line += flag ? (*flag ? "true" : "false") : cell(values[i]);
  }
  return line + "\r\n";
}

std::string json_object(std::span<const std::string_view> names, std::span<const Value> values,
                        const std::vector<bool>& are_flags) {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < values.size(); ++i) {
    nlohmann::ordered_json& field = object[std::string{names[i]}];
    if (const std::optional<bool> flag = flag_at(i, values, are_flags)) {
      field = *flag;
      continue;
    }
    std::visit(
        [&](const auto& value) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
            field = value;
          }
        },
        values[i]);
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace commfuse::reports
