// SPDX-License-Identifier: Apache-2.0
#include "sim/score/row.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "model/formats/measured_time.h"
#include "model/text/counted.h"
#include "model/text/suggest.h"

namespace commfuse::score {

namespace {

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Returns the unit at the end of a column's name: "us" for "median_us".
std::string_view unit_of(std::string_view name) {
  const std::size_t bar = name.rfind('_');
  return bar == std::string_view::npos ? std::string_view() : name.substr(bar + 1);
}

}  // namespace

Row::Row(const Table& table, std::size_t row)
    : table_(&table), row_(row), whole_row_(table.cells_of(row) == table.header().size()) {
  if (const std::string_view mistake = table.quote_fault(row); !mistake.empty()) {
    fault(std::string(mistake));
  } else if (!whole_row_) {
    fault(fmt::format("the row has {}, but the header has {}{}", counted(table.cells_of(row), "cell"),
                      counted(table.header().size(), "column"),
                      table.cells_of(row) < table.header().size() ? "; it is truncated" : ""));
  }
}

std::string_view Row::text(const Column& column) const {
  return whole_row_ && column.exists() ? table_->cell(row_, column) : std::string_view();
}

std::int64_t Row::whole(const Column& column, std::int64_t least, std::int64_t limit) {
  const std::string_view cell = text(column);
  if (const std::optional<std::int64_t> value = number_in<std::int64_t>(cell)) {
    if (*value >= least && *value <= limit) {
      return *value;
    }
    fault(fmt::format("{} is {}; it must be between {} and {}", column.name, *value, least, limit));
  } else if (cell.empty()) {
    fault(fmt::format("{} is missing", column.name));
  } else {
    fault(
        fmt::format("{} is {}, which is not a whole number from {} to {}", column.name, in_quotes(cell), least, limit));
  }
  return 1;
}

std::int64_t Row::count(const Column& column, std::int64_t limit) { return whole(column, 1, limit); }

std::int64_t Row::size(const Column& column) { return whole(column, 0, max_bytes); }

double Row::amount(const Column& column) {
  const std::string_view cell = text(column);
  const std::optional<double> value = number_in<double>(cell);
  if (value && std::isfinite(*value) && *value > 0.0) {
    return *value;
  }
  if (cell.empty()) {
    fault(fmt::format("{} is missing", column.name));
  } else if (value) {
    fault(fmt::format("{} is {}; a measurement must be a finite number above 0", column.name, cell));
  } else {
    fault(fmt::format(
        "{} is {}, which is not a number{}", column.name, in_quotes(cell),
        unit_of(column.name).empty() ? std::string() : fmt::format(" (the column is in {})", unit_of(column.name))));
  }
  return 1.0;
}

double Row::microseconds(const Column& column) {
  const double time = amount(column);
  if (is_measured_time(time)) {
    return time;
  }
  fault(fmt::format("{} is {}; a measured time must be between {:g} and {:g} us", column.name, text(column),
                    shortest_measured_us, longest_measured_us));
  return 1.0;
}

void Row::fault(std::string reason) {
  if (fault_.empty()) {
    fault_ = std::move(reason);
  }
}

}  // namespace commfuse::score
