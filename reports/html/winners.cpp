// SPDX-License-Identifier: Apache-2.0
#include "reports/html/winners.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/comparison.h"
#include "reports/crossover.h"
#include "reports/figure/markup.h"
#include "reports/figure/spread.h"
#include "reports/figure/wording.h"

namespace commfuse::reports {

namespace {

constexpr std::size_t most_lines = 120;  // of a map and of its changes; CSV and JSON have all

constexpr std::size_t most_columns = 24;  // the same
constexpr std::size_t most_maps = 8;

std::size_t index_of(MapAxis axis) { return static_cast<std::size_t>(axis); }

std::string cell_html(const MapCell* cell) {
  if (cell == nullptr) {
    return "<td>\xe2\x80\x94</td>";
  }
  const std::string share = cell->saved ? percent(*cell->saved) : "";
  const std::string tip =
      fmt::format("{} of the time of {}{}{}", share, cell->second,
                  cell->of_serial ? fmt::format(", {} of serial", percent(*cell->of_serial)) : std::string{},
                  cell->wins() ? std::string{} : "; ties with " + names_in_words(cell->tied));
  return fmt::format("<td title=\"saves {}\">{}{} {}</td>", escaped(tip), cell->wins() ? "" : "\xe2\x89\x88 ",
                     escaped(cell->winner), share);
}

/// Columns are sequence lengths, not more than one reads; all other axes that vary name the rows.
std::string table_html(const CrossoverMap& map) {
  const std::vector<std::size_t> columns = spread(map.values(MapAxis::seq).size(), most_columns);
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" aria-label=\"Winners, {0}\" tabindex=\"0\">\n<table>\n"
      "<caption>{0}</caption>\n<thead><tr><th scope=\"col\"></th>",
      escaped(heading_of(map)));
  for (const std::size_t s : columns) {
    html += fmt::format("<th scope=\"col\">{}</th>", escaped(value_in_words(map, MapAxis::seq, s)));
  }
  html += "</tr></thead>\n<tbody>\n";
  std::size_t lines = 0;
  for (auto cell = map.cells.begin(); cell != map.cells.end() && lines < most_lines; ++lines) {
    MapPlace place = cell->place;
    html +=
        fmt::format("<tr><th class=\"where\" scope=\"row\">{}</th>", escaped(place_in_words(map, place, MapAxis::seq)));
    for (const std::size_t s : columns) {
      place[index_of(MapAxis::seq)] = s;
      html += cell_html(map.at(place));
    }
    html += "</tr>\n";
    cell = std::find_if(cell, map.cells.end(), [&](const MapCell& other) {
      MapPlace row = other.place;
      row[index_of(MapAxis::seq)] = place[index_of(MapAxis::seq)];
      return row != place;
    });
  }
  html += "</tbody>\n</table>\n</div>\n";
  return lines < most_lines
             ? html
             : html + fmt::format("<p class=\"note\">At most {} lines; map.csv has all.</p>\n", most_lines);
}

std::string changes_html(const CrossoverMap& map) {
  std::string items;
  std::size_t lines = 0;
  for (const Crossing& crossing : map.crossings) {
    if (crossing.clear && lines++ < most_lines) {
      const std::string where = place_in_words(map, crossing.place, crossing.axis);
      items += fmt::format("<li>along {}{}{}: {}</li>\n", name_of(crossing.axis), where.empty() ? "" : ", ",
                           escaped(where), escaped(crossing_in_words(map, crossing)));
    }
  }
  return items.empty() ? "<p>No winner changes clearly between neighbours.</p>\n"
                       : fmt::format(
                             "<details open=\"open\"><summary>Where the winner changes</summary>\n<ul>\n{}</ul>\n"
                             "</details>\n",
                             items);
}

}  // namespace

std::string winners_section(std::span<const ResultRow> rows, const VerdictRule& rule) {
  const std::vector<CrossoverMap> maps = maps_of(rows, rule);
  if (maps.empty()) {
    return {};
  }
  std::string html = fmt::format(
      "<section aria-labelledby=\"winners\">\n<h2 id=\"winners\">Who wins where, point by point</h2>\n<p "
      "class=\"quiet\">The fastest "
      "strategy and the share of time that it saves over the best other one; \xe2\x89\x88 a tie: a win needs {}. A "
      "pointer on a cell tells what it saves over serial, and what it ties with.</p>\n",
      escaped(rule_in_words(rule)));
  for (std::size_t i = 0; i < std::min(maps.size(), most_maps); ++i) {
    html += table_html(maps[i]) + changes_html(maps[i]);
  }
  if (maps.size() > most_maps) {
    html +=
        fmt::format("<p class=\"note\">The first {} settings of {}; map.csv has all.</p>\n", most_maps, maps.size());
  }
  if (const std::string scaling = scaling_text(scalings_of(rows)); !scaling.empty() && maps.size() <= most_maps) {
    html += fmt::format("<pre>{}</pre>\n", escaped(scaling));
  }
  return html + "</section>\n";
}

}  // namespace commfuse::reports
