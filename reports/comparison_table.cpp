// SPDX-License-Identifier: Apache-2.0
// Table of a point: a row for each schedule, and the verdict below.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "reports/comparison.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

constexpr const char* comparison_line = "{:<28} {:>7} {:>5} {:>9} {:>8} {:>6}";
constexpr std::size_t label_width = 28;  // includes the mark before it; a longer label has a separate line
constexpr std::size_t bar_width = 11;

/// Formats one standard error as "4.1%"; "-" where it is unknown.
std::string error_cell(const ResultRow& row) {
  return row.makespan_error ? fmt::format("{:.1f}%", 100.0 * *row.makespan_error) : "-";
}

/// Formats the difference from serial as "-35.3%"; "-" for serial itself, and where serial was not run.
std::string serial_cell(const ResultRow& row, const ResultRow* serial) {
  const std::optional<double> share = against_serial(row, serial);
  return share ? with_sign(100.0 * *share, 1) + "%" : "-";
}

/// Returns '>' for the winner, '~' for a row that ties.
char mark_of(const ResultRow& row, const PointVerdict& point) {
  return !point.in_front(row) ? ' ' : point.wins() ? '>' : '~';
}

/// Shortens "commfuse (direct, g=3, sum on arrival, add on aux)" to "commfuse (direct, g=3)": drops the last options
/// until the label fits. Returns the whole label if the short one could also name another row.
std::string name_cell(const ResultRow& row, Rows rows) {
  constexpr std::size_t mark_width = 2;
  const auto is_used_by_other_row = [&](const std::string& name) {
    return std::ranges::any_of(rows, [&](const ResultRow& other) {
      const std::string whole = label(other);
      return &other != &row && (whole == name + ")" || whole.starts_with(name + ", "));
    });
  };
  const std::string whole = label(row);
  std::string name = whole.ends_with(')') ? whole.substr(0, whole.size() - 1) : whole;
  while (mark_width + name.size() + 1 > label_width) {
    const std::size_t comma = name.rfind(", ");
    if (comma == std::string::npos || is_used_by_other_row(name.substr(0, comma))) {
      return whole;
    }
    name.resize(comma);
  }
  return whole.ends_with(')') ? name + ")" : name;
}

/// Draws a bar in proportion to the slowest row's time; exposed time is red, the rest grey.
std::string bar(const ResultRow& row, Rows rows, TerminalStyle style) {
  const Duration slowest = makespan_of(*std::ranges::max_element(rows, {}, makespan_of));
  if (!style.is_on() || slowest <= Duration{}) {
    return {};
  }
  const auto cells = [&](Duration time) {
    const double share = to_seconds(std::max(time, Duration{})) / to_seconds(slowest);
    return std::min(bar_width, static_cast<std::size_t>(share * static_cast<double>(bar_width) + 0.5));
  };
  const auto dashes = [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      text += "\u2501";
    }
    return text;
  };
  const std::size_t whole = cells(makespan_of(row));
  const std::size_t exposed = std::min(whole, cells(row.analysis.critical.exposed));
  return " " + style.gray(dashes(whole - exposed)) + style.red(dashes(exposed));
}

std::string table_row(const ResultRow& row, Rows rows, const PointVerdict& point, const Unit& unit,
                      TerminalStyle style) {
  const Breakdown& parts = row.analysis.critical;
  const char mark = mark_of(row, point);
  const auto styled = [&](const std::string& text) { return mark == '>' ? style.bold(text) : text; };
  std::string name = fmt::format("{} {}", mark, name_cell(row, rows));
  std::string text;
  if (name.size() > label_width) {
    text = styled(name) + "\n";
    name.clear();
  }
  return text +
         styled(fmt::format(comparison_line, name, unit.text(parts.makespan), error_cell(row),
                            serial_cell(row, serial_of(rows)), unit.text(parts.exposed),
                            fmt::format("{:.1f}%", 100.0 * row.mfu))) +
         bar(row, rows, style) + "\n";
}

std::string block(Rows rows, const VerdictRule& rule, TerminalStyle style) {
  const Unit unit(rows);
  const PointVerdict point = point_verdict(rows, rule);
  const std::string heading = fmt::format("ranks {}, seq {}", rows[0].ranks, format_count(rows[0].seq));
  std::string text = fmt::format(comparison_line, heading, fmt::format("time/{}", unit.name()), "\u00b1", "vs serial",
                                 "exposed", "MFU") +
                     "\n";
  for (const ResultRow& row : rows) {
    text += table_row(row, rows, point, unit, style);
  }
  text += wrapped(verdict(rows, rule), "  ", "  ");
  if (const std::vector<std::string> warnings = warnings_of(rows); !warnings.empty()) {
    text += wrapped(fmt::format("Beyond the fit: {}.", fmt::join(warnings, "; ")), "  ", "  ");
  }
  return text;
}

}  // namespace

std::string line_on(std::string_view model, const ModelWords& words) {
  const auto known = words.find(model);
  return known == words.end() ? std::string{} : known->second + "\n";
}

std::string comparison_table(Rows rows, const VerdictRule& rule, const ModelWords& words, TerminalStyle style) {
  if (rows.empty()) {
    return {};
  }
  const ResultRow& first = rows.front();
  std::string text = wrapped(fmt::format("{} {} on {}, batch {}, {}", first.model, first.scope, machine_in_words(first),
                                         format_count(first.batch), first.dtype),
                             "", "  ") +
                     line_on(first.model, words);
  for (const Rows point : rows_by_point(rows)) {
    text += "\n" + block(point, rule, style);
  }
  return text;
}

}  // namespace commfuse::reports
