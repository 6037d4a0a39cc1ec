// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/rows_in_memory.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "model/record/columns.h"
#include "sim/sweep/rows_of_json.h"

namespace commfuse {

namespace {

std::vector<HeldColumn> columns_in_memory() {
  std::vector<HeldColumn> columns;
  for (const Column& column : all_columns()) {
    columns.push_back({std::string(column.name), store_type_of(column.name, column.type)});
  }
  return columns;
}

std::string insertion_of(const std::vector<HeldColumn>& columns) {
  std::string names = "id, checksum";
  std::string placeholders = "?, 0";
  for (const HeldColumn& column : columns) {
    names += fmt::format(", \"{}\"", column.name);
    placeholders += ", ?";
  }
  return fmt::format("INSERT INTO rows({}) VALUES({})", names, placeholders);
}

class Filler {
 public:
  explicit Filler(RowsInMemory& rows)
      : rows_(rows),
        insertion_(rows.database, insertion_of(rows.table_columns)),
        text_(rows.database, "INSERT INTO texts(id, text) VALUES(?, ?)"),
        is_used_(rows.table_columns.size()) {}

  void layer(std::span<const Value> values) {
    rows_.has_layers = true;
    std::size_t next_value = 0;
    fill([&](const Column& column) { return column.of_layers ? values[next_value++] : Value{}; });
  }

  void model(const StepRow& row) {
    rows_.has_models = true;
    fill([&](const Column& column) {
      const StepRow::Value* const value = row.find(column.name);
      return value == nullptr ? Value{} : std::visit([](const auto& content) { return value_of(content); }, *value);
    });
  }

  [[nodiscard]] std::vector<std::string> shown_columns() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < is_used_.size(); ++i) {
      const Column& column = all_columns()[i];
      if (is_used_[i] || (rows_.has_layers && column.of_layers)) {
        names.emplace_back(column.name);
      }
    }
    return names;
  }

 private:
  static Value value_of(bool flag) { return std::int64_t{flag}; }
  template <class T>
  static Value value_of(const T& value) {
    return value;
  }

  template <class ValueOf>
  void fill(const ValueOf& value_of) {
    insertion_.bind(1, next_++);
    std::vector<Value> values;  // bound strings live until the row is stored
    values.reserve(rows_.table_columns.size());
    for (std::size_t i = 0; i < rows_.table_columns.size(); ++i) {
      values.push_back(value_of(all_columns()[i]));
      bind(static_cast<int>(i) + 2, values[i], rows_.table_columns[i].type);
      is_used_[i] = is_used_[i] || !std::holds_alternative<std::monostate>(values[i]);
    }
    insertion_.finish();
  }

  void bind(int parameter, const Value& value, StoreType type) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      type == StoreType::word ? insertion_.bind(parameter, number_of(*text))
                              : insertion_.bind(parameter, std::string_view(*text));
    } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
      insertion_.bind(parameter, *count);
    } else if (const auto* number = std::get_if<double>(&value)) {
      insertion_.bind(parameter, *number);
    } else {
      insertion_.bind_nothing(parameter);
    }
  }

  std::int64_t number_of(const std::string& text) {
    const auto [entry, is_new] = numbers_.try_emplace(text, static_cast<std::int64_t>(numbers_.size()) + 1);
    if (is_new) {
      text_.bind(1, entry->second);
      text_.bind(2, std::string_view(text));
      text_.finish();
    }
    return entry->second;
  }

  RowsInMemory& rows_;
  Statement insertion_;
  Statement text_;
  std::vector<bool> is_used_;
  std::unordered_map<std::string, std::int64_t> numbers_;
  std::int64_t next_ = 0;
};

}  // namespace

RowsInMemory rows_in_memory(const std::filesystem::path& file) {
  RowsInMemory rows{.database = Database::in_memory(file == "-" ? "stdin" : file),
                    .table_columns = columns_in_memory(),
                    .shown_columns = {}};
  rows.database.run("BEGIN");
  migrate(rows.database, rows.table_columns, 0);
  Filler filler(rows);
  rows_of_json_file(file.string(), {[&](std::span<const Value> values, const ResultRow&) { filler.layer(values); },
                                    [&](const StepRow& row) { filler.model(row); }});
  rows.database.run("COMMIT");
  rows.shown_columns = filler.shown_columns();
  return rows;
}

}  // namespace commfuse
