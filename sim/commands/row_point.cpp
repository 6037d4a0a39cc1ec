// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/row_point.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <variant>

#include "model/check.h"
#include "model/config/resolver.h"

namespace commfuse::sim {

Settings settings_of_row(const ResultRow& row) {
  Resolver resolver;
  const auto put = [&](std::string_view key, const std::string& text) {
    const Field* field = find_field(key);
    check(field != nullptr, "a column of results that is a setting has its key");
    resolver.read_flag(*field, text);
  };
  for (const ResultColumn& column : result_columns()) {
    const Value value = column.role == ColumnRole::outcome ? Value{} : column.value(row);
    if (const auto* text = std::get_if<std::string>(&value)) {
      put(column.name, *text);
    } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
      put(column.name, fmt::format("{}", *count));
    }
  }
  put("uncertainty", row.makespan_error ? "on" : "off");
  return resolver.finish();
}

}  // namespace commfuse::sim
