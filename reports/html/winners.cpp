// SPDX-License-Identifier: Apache-2.0
#include "reports/html/winners.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "reports/crossover.h"
#include "reports/figure/markup.h"
#include "reports/figure/spread.h"
#include "reports/figure/wording.h"

namespace commfuse::reports {

namespace {

// Limits of a map and of its changes; map.csv and crossovers.csv have everything.
constexpr std::size_t max_winner_lines = 40;
constexpr std::size_t max_columns = 16;
constexpr std::size_t max_maps = 4;

std::size_t index_of(MapAxis axis) { return static_cast<std::size_t>(axis); }

std::string cell_html(const MapCell* cell) {
  if (cell == nullptr) {
    return "<td>\xe2\x80\x94</td>";
  }
  if (!cell->saved) {
    return fmt::format("<td title=\"the only strategy with a result\">{}</td>", escaped(cell->winner));
  }
  const std::string share = percent(*cell->saved);
  const std::string tip = fmt::format(
      "{} of the time of {}{}{}", share, cell->second,
      cell->of_baseline ? fmt::format(", {} of {}", percent(*cell->of_baseline), cell->baseline) : std::string{},
      cell->wins() ? std::string{} : "; ties with " + names_in_words(cell->tied));
  return fmt::format("<td title=\"saves {}\">{}{} {}</td>", escaped(tip), cell->wins() ? "" : "\xe2\x89\x88 ",
                     escaped(cell->winner), share);
}

/// Columns are sequence lengths, at most as many as are readable; rows are named by all other axes that vary.
std::string table_html(const CrossoverMap& map) {
  const std::vector<std::size_t> columns = spread({.count = map.values(MapAxis::seq).size(), .kept = max_columns});
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" aria-label=\"Winners, {0}\" tabindex=\"0\">\n<table>\n"
      "<caption><span>{0}</span></caption>\n<thead><tr><th scope=\"col\"></th>",
      escaped(heading_of(map)));
  for (const std::size_t s : columns) {
    html += fmt::format("<th scope=\"col\">{}</th>", escaped(value_in_words(map, MapAxis::seq, s)));
  }
  html += "</tr></thead>\n<tbody>\n";
  std::size_t lines = 0;
  auto cell = map.cells.begin();
  for (; cell != map.cells.end() && lines < max_winner_lines; ++lines) {
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
  if (const std::size_t count = map.values(MapAxis::seq).size(); columns.size() < count) {
    html += fmt::format("<p class=\"note\">Only {} of {} sequence lengths are shown; map.csv has all.</p>\n",
                        columns.size(), count);
  }
  return cell == map.cells.end()
             ? html
             : html +
                   fmt::format("<p class=\"note\">Only {} lines are shown; map.csv has all.</p>\n", max_winner_lines);
}

std::string changes_html(const CrossoverMap& map) {
  std::string items;
  std::size_t changes = 0;
  for (const Crossing& crossing : map.crossings) {
    if (crossing.clear && changes++ < max_winner_lines) {
      const std::string where = place_in_words(map, crossing.place, crossing.axis);
      items += fmt::format("<li>along {}{}{}: {}</li>\n", name_of(crossing.axis), where.empty() ? "" : ", ",
                           escaped(where), escaped(crossing_in_words(map, crossing)));
    }
  }
  const std::string note =
      changes > max_winner_lines
          ? fmt::format("<p class=\"note\">Only {} of {} changes are shown; crossovers.csv has all.</p>\n",
                        max_winner_lines, changes)
          : std::string{};
  return items.empty() ? "<p>No clear change of winner between neighbouring points.</p>\n"
                       : fmt::format(
                             "<details open=\"open\"><summary>Where the winner changes</summary>\n<ul>\n{}</ul>\n{}"
                             "</details>\n",
                             items, note);
}

/// The rows of one map.
struct MapRows {
  std::size_t first = 0;  ///< First row of the map.
  std::vector<RowRange> settings;
};

/// Calls each(entry, row) for all rows that a map shows, until `each` returns true.
template <class Each>
void until(const RowTable& rows, const MapRows& map, const Each& each) {
  ResultRow row;
  for (const RowRange& range : map.settings) {
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      rows.read(i, row);
      if (std::optional<MapEntry> entry = map_entry_of(row); entry && each(*std::move(entry), i)) {
        return;
      }
    }
  }
}

/// Groups settings by their map, in the order in which maps first have a row to show; omits settings whose rows form no
/// map.
std::vector<MapRows> map_rows_of(const RowTable& rows, const Overview& overview) {
  std::vector<MapRows> maps;
  std::map<std::string, std::size_t> known;
  for (const Overview::Setting& setting : overview.settings) {
    const auto [entry, is_new] = known.try_emplace(map_setting_of(rows[setting.rows.first]), maps.size());
    if (is_new) {
      maps.emplace_back();
    }
    maps[entry->second].settings.push_back(setting.rows);
  }
  std::erase_if(maps, [&](MapRows& map) {
    MapTest test;
    std::optional<std::size_t> first;
    until(rows, map, [&](const MapEntry& entry, std::size_t row) {
      first = first.value_or(row);
      return test.add(entry);
    });
    map.first = first.value_or(0);
    return !test.is_map();
  });
  std::ranges::sort(maps, {}, &MapRows::first);
  return maps;
}

CrossoverMap map_of(const RowTable& rows, const MapRows& map_rows, const VerdictRule& rule) {
  std::vector<MapEntry> entries;
  until(rows, map_rows, [&](MapEntry&& entry, std::size_t) {
    entries.push_back(std::move(entry));
    return false;
  });
  return std::move(crossover_maps(entries, rule).front());
}

std::string scaling_html(const RowTable& rows) {
  FastestPoints fastest;
  ResultRow row;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows.read(i, row);
    fastest.add(row);
  }
  // The terminal's lines are wrapped: a continuation begins with four spaces, or with none if it is not a heading.
  std::string html;
  std::istringstream lines(scaling_text(fastest.scalings()));
  for (std::string line; std::getline(lines, line);) {
    const bool is_head = line.starts_with("Strong scaling:") || line.starts_with("Weak scaling:");
    const bool continues = line.starts_with("    ") || (!is_head && !line.starts_with("  "));
    line.erase(0, line.find_first_not_of(' '));
    html += (html.empty() ? "" : continues ? " " : "<br/>") + escaped(line);
  }
  return html.empty() ? html : fmt::format("<p>{}</p>\n", html);
}

}  // namespace

std::string winners_section(const RowTable& rows, const Overview& overview, const VerdictRule& rule) {
  const std::vector<MapRows> maps = map_rows_of(rows, overview);
  if (maps.empty()) {
    return {};
  }
  std::string words = overview.wins_words;
  std::ranges::replace(words, '\n', ' ');
  std::string html = fmt::format(
      "<details><summary>Point by point, and where the winner changes</summary>\n"
      "<p>{}</p>\n"
      "<p class=\"quiet\">Each cell: the fastest strategy, and the share of time that it saves against the next best; "
      "\xe2\x89\x88 a tie. Hover over a cell for its saving against serial and its ties.</p>\n",
      escaped(words));
  for (std::size_t i = 0; i < std::min(maps.size(), max_maps); ++i) {
    const CrossoverMap map = map_of(rows, maps[i], rule);
    html += table_html(map) + changes_html(map);
  }
  if (maps.size() > max_maps) {
    return html + fmt::format("<p class=\"note\">The first {} settings of {}; map.csv has all.</p>\n</details>\n",
                              max_maps, maps.size());
  }
  return html + scaling_html(rows) + "</details>\n";
}

}  // namespace commfuse::reports
