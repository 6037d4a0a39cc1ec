// SPDX-License-Identifier: Apache-2.0
#include "reports/fitted_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "model/text/plain_text.h"
#include "model/wrapped.h"

namespace commfuse::reports {

namespace {

/// Replaces a space where a line must not be broken.
constexpr char unbroken_space = '\x1f';

void append_text(const Value& value, std::string& to) {
  if (const auto* number = std::get_if<double>(&value)) {
    fmt::format_to(std::back_inserter(to), "{:.6g}", *number);
  } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
    fmt::format_to(std::back_inserter(to), "{}", *count);
  } else {
    const auto* text = std::get_if<std::string>(&value);
    to += text == nullptr ? "-" : *text;
  }
}

void append_padded(std::string_view cell, bool is_text, std::size_t width, std::string& lines) {
  const std::size_t blank = width - characters(cell);
  lines.append(is_text ? 0 : blank, ' ');
  lines += cell;
  lines.append(is_text ? blank : 0, ' ');
}

void end_line(std::string& lines) {
  lines.erase(lines.find_last_not_of(' ') + 1);
  lines += '\n';
}

}  // namespace

void FittedTable::Cells::add(const Value& value) {
  const std::size_t before = text.size();
  append_text(value, text);
  const std::string_view cell = std::string_view(text).substr(before);
  const bool is_text = !at_right && std::holds_alternative<std::string>(value);
  width = std::max(width, characters(cell));
  if (repeats == 0) {
    first = cell;
    first_is_text = is_text;
  }
  if (cells.empty() && cell == first) {
    ++repeats;
    text.resize(before);
    return;
  }
  cells.push_back({static_cast<std::uint32_t>(cell.size()), is_text});
}

FittedTable::FittedTable(std::vector<FittedColumn> columns, std::size_t width)
    : columns_(std::move(columns)), cells_(columns_.size()), width_(width) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    cells_[i].width = characters(columns_[i].name);
    cells_[i].at_right = columns_[i].at_right;
  }
}

void FittedTable::add(std::span<const Value> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    cells_[i].add(values[i]);
  }
  ++rows_;
}

bool FittedTable::is_shown(std::size_t column) const {
  return columns_[column].constant == Constant::shown || !cells_[column].is_constant();
}

std::string FittedTable::stated_constants() const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string& value = cells_[i].first;
    const bool is_known = value != "-" && value != columns_[i].usual;
    if (columns_[i].constant == Constant::stated && cells_[i].is_constant() && rows_ > 0 && is_known) {
      text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", columns_[i].name, unbroken_space, value);
    }
  }
  return text;
}

std::size_t FittedTable::width_of(const std::vector<std::size_t>& shown, std::size_t gap) const {
  std::size_t width = 0;
  for (const std::size_t column : shown) {
    width += cells_[column].width + gap;
  }
  return width - std::min(width, gap);
}

FittedTable::Layout FittedTable::layout() const {
  Layout layout;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (is_shown(i)) {
      layout.shown.push_back(i);
    }
  }
  for (;;) {
    for (const std::size_t gap : {std::size_t{2}, std::size_t{1}}) {
      if (width_of(layout.shown, gap) <= width_) {
        layout.gap = gap;
        return layout;
      }
    }
    std::size_t last = 0;
    for (std::size_t i = 0; i < layout.shown.size(); ++i) {
      if (columns_[layout.shown[i]].expendable >= columns_[layout.shown[last]].expendable) {
        last = i;
      }
    }
    if (layout.shown.empty() || columns_[layout.shown[last]].expendable == 0) {
      return layout;
    }
    layout.dropped.push_back(layout.shown[last]);
    layout.shown.erase(layout.shown.begin() + static_cast<std::ptrdiff_t>(last));
  }
}

void FittedTable::write(const TableNotes& notes, const std::function<void(const std::string&)>& write) const {
  constexpr std::size_t part = 1 << 16;
  const Layout layout = this->layout();
  std::string lines;
  for (const std::string& above : {notes.above, stated_constants()}) {
    lines += above.empty() ? "" : wrapped(above, "", "", width_);
  }
  if (!lines.empty()) {
    std::ranges::replace(lines, unbroken_space, ' ');
    lines += "\n";
  }
  for (const std::size_t column : layout.shown) {
    const Cells& cells = cells_[column];
    append_padded(columns_[column].name, rows_ == 0 ? !cells.at_right : cells.first_is_text, cells.width, lines);
    lines.append(layout.gap, ' ');
  }
  end_line(lines);
  std::vector<std::size_t> starts(columns_.size(), 0);
  for (std::size_t row = 0; row < rows_; ++row) {
    for (const std::size_t column : layout.shown) {
      const Cells& cells = cells_[column];
      if (row < cells.repeats) {
        append_padded(cells.first, cells.first_is_text, cells.width, lines);
      } else {
        const Cell& cell = cells.cells[row - cells.repeats];
        append_padded(std::string_view(cells.text).substr(starts[column], cell.size), cell.is_text, cells.width, lines);
        starts[column] += cell.size;
      }
      lines.append(layout.gap, ' ');
    }
    end_line(lines);
    if (lines.size() >= part) {
      write(lines);
      lines.clear();
    }
  }
  if (!layout.dropped.empty()) {
    std::string names;
    for (const std::size_t column : layout.dropped) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", columns_[column].name);
    }
    lines += "\n" + wrapped(fmt::format("Not shown for lack of width: {}{}", names, notes.below), "", "  ", width_);
  }
  if (!notes.end.empty() && rows_ > 0) {
    lines += (layout.dropped.empty() ? "\n" : "") + wrapped(notes.end, "", "", width_);
  }
  write(lines);
}

}  // namespace commfuse::reports
