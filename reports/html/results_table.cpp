// SPDX-License-Identifier: Apache-2.0
#include "reports/html/results_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "model/text/decimals.h"
#include "reports/comparison.h"
#include "reports/figure/markup.h"
#include "reports/figure/wording.h"
#include "reports/html/definitions.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

/// A duration of the breakdown, in the unit of the table.
struct TimeColumn {
  std::string_view definition;
  Duration Breakdown::*part;
};
constexpr std::array time_columns{
    TimeColumn{"compute", &Breakdown::compute}, TimeColumn{"slicing", &Breakdown::slicing},
    TimeColumn{"stretch", &Breakdown::stretch}, TimeColumn{"local", &Breakdown::local},
    TimeColumn{"exposed", &Breakdown::exposed}, TimeColumn{"head", &Breakdown::head},
    TimeColumn{"bubble", &Breakdown::bubble},   TimeColumn{"tail", &Breakdown::tail},
};
// Only some of the columns and of the points fit on paper.
bool is_on_paper(std::string_view definition) { return definition == "compute" || definition == "exposed"; }
std::string_view paper_class(bool on_paper) { return on_paper ? "" : " class=\"screen\""; }

constexpr std::size_t columns = time_columns.size() + 7;  // strategy, time, error, vs serial, behind, MFU, bound

// The unit is always microseconds, as in CSV and JSON, so that all points of a table are comparable.
constexpr std::string_view unit = "\xc2\xb5s";
std::string digits(Duration duration) { return with_minus(with_decimals(to_microseconds(duration), 1)); }

std::string header() {
  const auto cell = [](std::string_view id, std::string_view of_unit, bool on_paper = true) {
    return fmt::format("<th scope=\"col\"{}>{}<span class=\"unit\">{}</span></th>", paper_class(on_paper), defined(id),
                       of_unit);
  };
  std::string html = "<thead><tr><th scope=\"col\">Strategy</th>" + cell("time", unit) + cell("error", "%") +
                     cell("serial", "%") + cell("behind", "%") + cell("mfu", "%");
  for (const TimeColumn& column : time_columns) {
    html += cell(column.definition, unit, is_on_paper(column.definition));
  }
  return html + cell("bound", unit) + "</tr></thead>\n";
}

/// Returns the visible mark before the name, and its text for screen readers.
std::string mark_of(const PointView& point, const ResultRow& row) {
  if (!point.in_front(row)) {
    return "<span class=\"mark\"></span>";
  }
  return point.front.size() == 1
             ? "<span class=\"mark\" aria-hidden=\"true\">\xe2\x96\xb8</span><span class=\"unseen\">fastest: </span>"
             : "<span class=\"mark\" aria-hidden=\"true\">\xe2\x89\x88</span><span class=\"unseen\">tie: "
               "</span>";
}

std::string row_html(const PointView& point, const ResultRow& row) {
  const bool wins = point.front.size() == 1 && point.in_front(row);
  std::string html = fmt::format("<tr{}><th scope=\"row\">{}{}</th>", wins ? " class=\"fastest\"" : "",
                                 mark_of(point, row), escaped(label_of(row)));
  if (!has_result(row)) {
    return html + fmt::format("<td colspan=\"{}\" class=\"none\">no result: {}</td></tr>\n", columns - 1,
                              row.reason.empty() ? "the point cannot be run" : escaped(row.reason));
  }
  const double behind = times_slower(row, *point.ranking.front()) - 1.0;
  const auto cell = [&](const std::string& text) { html += fmt::format("<td>{}</td>", text); };
  cell(digits(makespan_of(row)));
  cell(row.makespan_error ? fmt::format("\xc2\xb1{:.1f}", 100.0 * *row.makespan_error) : "\xe2\x80\x94");
  const std::optional<double> share = against_serial(row, serial_of(point.rows));
  cell(share ? with_minus(with_sign(100.0 * *share, 1)) : "\xe2\x80\x94");
  cell(&row == point.ranking.front() ? "\xe2\x80\x94" : with_minus(with_sign(100.0 * behind, 1)));
  cell(fmt::format("{:.1f}", 100.0 * row.mfu));
  for (const TimeColumn& column : time_columns) {
    html += fmt::format("<td{}>{}</td>", paper_class(is_on_paper(column.definition)),
                        digits(row.analysis.critical.*column.part));
  }
  cell(digits(row.ideal));
  return html + "</tr>\n";
}

std::string verdict_of(const PointView& point, const VerdictRule& rule) {
  std::vector<ResultRow> rows;
  std::copy_if(point.rows.begin(), point.rows.end(), std::back_inserter(rows), has_result);
  std::string text = memory_sentence(rows);
  text += rows.size() < 2 ? std::string{} : (text.empty() ? "" : " ") + verdict(rows, rule);
  if (const std::vector<std::string> warnings = warnings_of(rows); !warnings.empty()) {
    text += fmt::format("{}Beyond the fit: {}.", text.empty() ? "" : " ", fmt::join(warnings, "; "));
  }
  return text;
}

std::string point_html(const PointView& point, bool on_paper, const VerdictRule& rule) {
  std::string html = fmt::format(
      "<tbody{}>\n<tr class=\"point\"><th colspan=\"{}\" scope=\"rowgroup\"><span class=\"which\">{} <span "
      "class=\"verdict\">{}</span></span></th></tr>\n",
      paper_class(on_paper), columns, escaped(point_of(point.rows.front())),
      escaped(for_page(verdict_of(point, rule))));
  for (const ResultRow& row : point.rows) {
    html += row_html(point, row);
  }
  return html + "</tbody>\n";
}

}  // namespace

std::string results_table(std::string_view setting, std::span<const ResultRow> rows, const RowLimits& limits,
                          const VerdictRule& rule) {
  const std::string title = escaped(setting);
  const auto prints = [&](const ResultRow& first) {
    const std::size_t row = limits.first_row + static_cast<std::size_t>(&first - rows.data());
    return std::ranges::find(limits.on_paper, row) != limits.on_paper.end();
  };
  std::string points;
  std::size_t shown = 0;
  bool any_prints = false;
  for (const PointView& point : points_of(rows, rule)) {
    if (shown > 0 && shown + point.rows.size() > limits.on_screen) {
      break;
    }
    const bool on_paper = prints(point.rows.front());
    points += point_html(point, on_paper, rule);
    any_prints = any_prints || on_paper;
    shown += point.rows.size();
  }
  const std::string_view screen = any_prints ? "" : " screen";
  std::string html = fmt::format(
      "<div class=\"scroll{2}\" role=\"region\" aria-label=\"{0}\" "
      "tabindex=\"0\">\n<table>\n<caption><span>{0}</span></caption>\n{1}{3}</table>\n</div>\n",
      title, header(), screen, points);
  if (shown < rows.size()) {
    html += fmt::format(
        "<p class=\"note{}\">The first {} rows of {}; all of them are in the CSV and JSON of these results.</p>\n",
        screen, shown, rows.size());
  }
  return html;
}

}  // namespace commfuse::reports
