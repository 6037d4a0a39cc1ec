// SPDX-License-Identifier: Apache-2.0
#include "reports/plan/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/text/plain_text.h"
#include "model/wrapped.h"
#include "reports/figure/markup.h"
#include "reports/plan/plan_tables.h"
#include "reports/plan/plan_words.h"

namespace commfuse::reports {

namespace {

std::string padded(const std::string& text, std::size_t width, bool to_the_left) {
  const std::string space(width - std::min(width, characters(text)), ' ');
  return to_the_left ? text + space : space + text;
}

std::vector<std::size_t> widths_of(const PlanTable& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::size_t width = characters(table.columns[column].name);
    for (const std::vector<std::string>& row : table.rows) {
      width = std::max(width, characters(row[column]));
    }
    widths.push_back(width);
  }
  return widths;
}

/// Returns a row of the table; text in the last column continues on lines below.
std::string line_of(const PlanTable& table, const std::vector<std::string>& cells,
                    const std::vector<std::size_t>& widths) {
  const std::size_t last = cells.size() - 1;
  std::string line = " ";
  for (std::size_t column = 0; column < last; ++column) {
    line += " " + padded(cells[column], widths[column], table.columns[column].is_text);
  }
  if (table.columns[last].is_text && !cells[last].empty()) {
    return wrapped(cells[last], line + " ", std::string(characters(line) + 1, ' '));
  }
  line += " " + padded(cells[last], widths[last], table.columns[last].is_text);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// Removes the columns that do not fit in a terminal.
PlanTable narrow(PlanTable table) {
  for (std::size_t column = table.columns.size(); column-- > 0;) {
    if (table.columns[column].is_wide) {
      const auto offset = static_cast<std::ptrdiff_t>(column);
      table.columns.erase(table.columns.begin() + offset);
      for (std::vector<std::string>& row : table.rows) {
        row.erase(row.begin() + offset);
      }
    }
  }
  return table;
}

std::string text_of(const PlanTable& table) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::vector<std::string> names;
  for (const PlanColumn& column : table.columns) {
    names.push_back(column.name);
  }
  const bool named = std::any_of(names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
  std::string text = wrapped(table.title, "\n", "") + (named ? line_of(table, names, widths) : "");
  for (const std::vector<std::string>& row : table.rows) {
    text += line_of(table, row, widths);
  }
  return text + (table.note.empty() ? "" : wrapped(table.note, "  ", "  "));
}

/// Escapes characters that have a meaning in Markdown or HTML.
std::string in_markdown(const std::string& text) {
  std::string safe;
  for (const char c : escaped(text)) {
    if (c == '|' || c == '*' || c == '_' || c == '`' || c == '[' || c == ']' || c == '\\') {
      safe += '\\';
    }
    safe += c == '\n' ? ' ' : c;
  }
  return safe;
}

std::string markdown_of(const PlanTable& table) {
  std::string text = fmt::format("\n## {}\n\n|", in_markdown(table.title));
  std::string rule = "|";
  for (const PlanColumn& column : table.columns) {
    text += fmt::format(" {} |", in_markdown(column.name));
    rule += column.is_text ? "---|" : "---:|";
  }
  text += "\n" + rule + "\n";
  for (const std::vector<std::string>& row : table.rows) {
    text += "|";
    for (const std::string& cell : row) {
      text += fmt::format(" {} |", in_markdown(cell));
    }
    text += "\n";
  }
  return text + (table.note.empty() ? "" : fmt::format("\n{}\n", in_markdown(table.note)));
}

}  // namespace

std::string plan_text(const CapacityPlan& plan) {
  std::string text = wrapped(plan.title, "", "") + "\n" + wrapped(plan_verdict(plan), "", "");
  for (const PlanTable& table : plan_tables(plan)) {
    text += text_of(narrow(table));
  }
  return text;
}

std::string plan_sentences(const CapacityPlan& plan) { return wrapped(plan_verdict(plan), "", ""); }

std::string plan_markdown(const CapacityPlan& plan) {
  std::string text = fmt::format("# {}\n\n{}\n", in_markdown(plan.title), in_markdown(plan_verdict(plan)));
  for (const PlanTable& table : plan_tables(plan)) {
    text += markdown_of(table);
  }
  return text;
}

}  // namespace commfuse::reports
