// SPDX-License-Identifier: Apache-2.0
#include "python/engine/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>

#include "model/config_error.h"
#include "model/text/suggest.h"

namespace commfuse::python {

namespace {

Cell cell_of(Value value) {
  return std::visit([](auto&& content) -> Cell { return std::forward<decltype(content)>(content); }, std::move(value));
}

Cell cell_of(const StepRow::Value& value) {
  return std::visit([](const auto& content) -> Cell { return content; }, value);
}

ColumnType type_of(const StepRow::Value& value) {
  return std::holds_alternative<bool>(value)           ? ColumnType::flag
         : std::holds_alternative<std::int64_t>(value) ? ColumnType::count
         : std::holds_alternative<double>(value)       ? ColumnType::number
                                                       : ColumnType::text;
}

/// Returns every name once, in order of appearance, which is the order of the columns of CSV.
std::vector<ColumnHead> heads_of(std::span<const StepRow> rows) {
  std::vector<ColumnHead> heads;
  for (const StepRow& row : rows) {
    for (const auto& [name, value] : row.cells) {
      if (std::ranges::find(heads, name, &ColumnHead::name) == heads.end()) {
        heads.push_back({std::string(name), type_of(value)});
      }
    }
  }
  return heads;
}

/// Fills a column value by value.
class Filler {
 public:
  Filler(Column& column, std::size_t rows) : column_(column) {
    switch (column.type) {
      case ColumnType::text: column.codes.reserve(rows); break;
      case ColumnType::count: column.counts.reserve(rows); break;
      case ColumnType::number: column.numbers.reserve(rows); break;
      case ColumnType::flag: column.flags.reserve(rows); break;
    }
  }

  void add(const Cell& cell) {
    const bool is_present = !std::holds_alternative<std::monostate>(cell);
    if (column_.type == ColumnType::text) {
      column_.codes.push_back(is_present ? code_of(std::get<std::string>(cell)) : -1);
      return;
    }
    if (!is_present) {
      add_gap();
    } else if (has_gaps_ || column_.type == ColumnType::number) {
      column_.numbers.push_back(number_in(cell));
    } else if (column_.type == ColumnType::count) {
      column_.counts.push_back(std::get<std::int64_t>(cell));
    } else {
      column_.flags.push_back(std::get<bool>(cell) ? 1 : 0);
    }
  }

 private:
  static double number_in(const Cell& cell) {
    if (const auto* const count = std::get_if<std::int64_t>(&cell)) {
      return static_cast<double>(*count);
    }
    if (const auto* const flag = std::get_if<bool>(&cell)) {
      return *flag ? 1.0 : 0.0;
    }
    return std::get<double>(cell);
  }

  std::int32_t code_of(const std::string& word) {
    if (!column_.codes.empty() && column_.codes.back() >= 0 &&
        column_.words[static_cast<std::size_t>(column_.codes.back())] == word) {
      return column_.codes.back();
    }
    const auto [entry, is_new] = known_.try_emplace(word, static_cast<std::int32_t>(column_.words.size()));
    if (is_new) {
      column_.words.push_back(word);
    }
    return entry->second;
  }

  /// NumPy's integers and booleans have no value for "absent", so the column's values become floating-point numbers.
  void add_gap() {
    if (!has_gaps_ && column_.type != ColumnType::number) {
      column_.numbers.assign(column_.counts.begin(), column_.counts.end());
      column_.numbers.insert(column_.numbers.end(), column_.flags.begin(), column_.flags.end());
      column_.counts = {};
      column_.flags = {};
    }
    has_gaps_ = true;
    column_.numbers.push_back(std::numeric_limits<double>::quiet_NaN());
  }

  Column& column_;
  bool has_gaps_ = false;
  std::unordered_map<std::string, std::int32_t> known_;
};

}  // namespace

Table::Table(std::shared_ptr<const RowTable> layers) : layers_(std::move(layers)) {
  for (const ResultColumn& column : result_columns()) {
    heads_.push_back({std::string(column.name), column.type});
  }
}

Table::Table(std::vector<StepRow> models) : models_(std::move(models)), heads_(heads_of(models_)) {}

std::size_t Table::size() const { return layers_ == nullptr ? models_.size() : layers_->size(); }

const Column& Table::column(const std::string& name) {
  const auto head = std::ranges::find(heads_, name, &ColumnHead::name);
  if (head == heads_.end()) {
    const std::vector<std::string_view> known = [&] {
      std::vector<std::string_view> names;
      for (const ColumnHead& column : heads_) {
        names.emplace_back(column.name);
      }
      return names;
    }();
    throw ConfigError(fmt::format("unknown column {}; {}", in_quotes(name), remedy_for(name, known, "columns")));
  }
  const auto index = static_cast<std::size_t>(head - heads_.begin());
  const std::lock_guard lock(mutex_);
  if (!columns_.contains(index)) {
    read({index});
  }
  return columns_.at(index);
}

void Table::read_all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> indices;
  for (std::size_t index = 0; index < heads_.size(); ++index) {
    if (!columns_.contains(index)) {
      indices.push_back(index);
    }
  }
  if (!indices.empty()) {
    read(indices);
  }
}

std::vector<Cell> Table::record(std::size_t row) const {
  std::vector<Cell> cells;
  if (layers_ == nullptr) {
    for (const ColumnHead& head : heads_) {
      const StepRow::Value* value = models_[row].find(head.name);
      cells.push_back(value == nullptr ? Cell{} : cell_of(*value));
    }
    return cells;
  }
  const ResultRow layer = (*layers_)[row];
  for (const ResultColumn& column : result_columns()) {
    cells.push_back(cell_of(column.value(layer)));
  }
  return cells;
}

void Table::read(const std::vector<std::size_t>& indices) {
  std::vector<Filler> fillers;
  fillers.reserve(indices.size());
  for (const std::size_t index : indices) {
    fillers.emplace_back(columns_.emplace(index, Column{.type = heads_[index].type}).first->second, size());
  }
  for_each_row([&](const ValueAt& value) {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      fillers[i].add(value(indices[i]));
    }
  });
}

void Table::for_each_row(const std::function<void(const ValueAt& value)>& take) const {
  if (layers_ == nullptr) {
    for (const StepRow& row : models_) {
      take([&](std::size_t index) {
        const StepRow::Value* value = row.find(heads_[index].name);
        return value == nullptr ? Cell{} : cell_of(*value);
      });
    }
    return;
  }
  const std::span<const ResultColumn> columns = result_columns();
  ResultRow row;
  const ValueAt value = [&](std::size_t index) { return cell_of(columns[index].value(row)); };
  for (std::size_t i = 0; i < layers_->size(); ++i) {
    layers_->read(i, row);
    take(value);
  }
}

}  // namespace commfuse::python
