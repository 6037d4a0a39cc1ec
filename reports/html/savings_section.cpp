// SPDX-License-Identifier: Apache-2.0
#include "reports/html/savings_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "reports/commas.h"
#include "reports/figure/markup.h"
#include "reports/figure/spread.h"
#include "reports/figure/wording.h"
#include "reports/percents.h"

namespace commfuse::reports {

namespace {

constexpr std::size_t max_saving_lines = 24;

struct Line {
  std::string name;
  const SavingCount* count = nullptr;
};

std::string saving_percent(double share) { return with_minus(signed_percent(share)); }

std::string line_html(const Line& line, bool has_points) {
  const SavingCount& count = *line.count;
  return fmt::format(
      "<tr><th class=\"where\" scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}<td>{}</td><td>{} to "
      "{}</td></tr>\n",
      escaped(line.name), saving_percent(count.median), size_with_commas(count.pays), size_with_commas(count.loses),
      size_with_commas(count.close), has_points ? fmt::format("<td>{}</td>", size_with_commas(count.points)) : "",
      saving_percent(count.best), saving_percent(count.low), saving_percent(count.high));
}

/// The number of points is in the caption if it is equal for all lines, else in a column.
std::string table_html(std::string_view title, std::string_view first, const std::vector<Line>& lines) {
  const std::size_t points = lines.empty() ? 0 : lines.front().count->points;
  const bool has_points = std::ranges::any_of(lines, [&](const Line& line) { return line.count->points != points; });
  const std::string caption =
      has_points ? std::string{title}
                 : fmt::format("{} ({} point{})", title, size_with_commas(points), points == 1 ? "" : "s");
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\">\n<table class=\"savings\">\n"
      "<caption><span>{0}</span></caption>\n<thead><tr><th scope=\"col\">{1}</th>",
      caption, first);
  for (const std::string_view head :
       {"Median", "Pays at", "Loses at", "Too close at", "Points", "At best", "Middle 80%"}) {
    html += head != "Points" || has_points ? fmt::format("<th scope=\"col\">{}</th>", head) : "";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::size_t index : spread({.count = lines.size(), .kept = max_saving_lines})) {
    html += line_html(lines[index], has_points);
  }
  html += "</tbody>\n</table>\n</div>\n";
  return lines.size() <= max_saving_lines
             ? html
             : html + fmt::format(
                          "<p class=\"note\">{} of {}, evenly spaced from the largest saving to the smallest.</p>\n",
                          max_saving_lines, lines.size());
}

}  // namespace

std::string savings_tables(const Overview& overview) {
  if (overview.savings.points < 2) {
    return {};
  }
  std::vector<Line> strategies;
  for (const StrategySavings& strategy : overview.strategies) {
    strategies.push_back({strategy.strategy, &strategy.count});
  }
  std::string html = table_html("Time saved against serial, by strategy", "Strategy", strategies);
  html += "<p class=\"note\">Shares of serial's time; negative: the strategy takes longer than serial.</p>\n";
  std::vector<Line> settings;
  for (const Overview::Setting& setting : overview.settings) {
    if (setting.savings.points > 0) {
      settings.push_back({setting.title, &setting.savings});
    }
  }
  if (settings.size() < 2) {
    return html;
  }
  std::ranges::stable_sort(settings, std::ranges::greater{}, [](const Line& line) { return line.count->median; });
  return html + table_html("Time saved against serial, by setting", "Setting", settings);
}

}  // namespace commfuse::reports
