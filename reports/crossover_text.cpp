// SPDX-License-Identifier: Apache-2.0
// Crossover maps on a terminal, as CSV and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/columns.h"
#include "model/text/counted.h"
#include "model/wrapped.h"
#include "reports/comparison.h"
#include "reports/crossover.h"
#include "reports/rows.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t least_label_width = 14;
constexpr std::size_t cell_width = 11;
constexpr std::size_t max_changes = 24;

std::size_t index_of(MapAxis axis) { return static_cast<std::size_t>(axis); }

/// Returns whether the values of an axis are counts, which CSV and JSON have as numbers.
bool is_count(MapAxis axis) { return axis == MapAxis::seq || axis == MapAxis::ranks; }

/// Formats a cell as "co 12/38": the winner, and the percentages of time that it saves against the next best strategy
/// and against the baseline. Begins with "~" if another strategy ties.
std::string cell_text(const CrossoverMap& map, const std::vector<std::string>& names, const MapCell* cell) {
  if (cell == nullptr) {
    return "-";
  }
  const auto winner = std::find(map.strategies.begin(), map.strategies.end(), cell->winner) - map.strategies.begin();
  const auto percent = [](const std::optional<double>& share) {
    return share ? fmt::format("{:.0f}", 100.0 * *share) : std::string{"-"};
  };
  return fmt::format("{}{} {}/{}", cell->wins() ? "" : "~", names[static_cast<std::size_t>(winner)],
                     percent(cell->saved), percent(cell->of_baseline));
}

/// The rows of a table are link bandwidths if they vary, otherwise network bandwidths if they vary, otherwise ranks.
/// Every combination of values of the remaining axes has a separate table.
MapAxis row_axis(const CrossoverMap& map) {
  for (const MapAxis axis : {MapAxis::link, MapAxis::network}) {
    if (map.values(axis).size() > 1) {
      return axis;
    }
  }
  return MapAxis::ranks;
}

/// Returns the width of the labels of a map's rows.
std::size_t label_width_of(const CrossoverMap& map) {
  const MapAxis down = row_axis(map);
  std::size_t width = least_label_width;
  for (std::size_t row = 0; row < map.values(down).size(); ++row) {
    width = std::max(width, value_in_words(map, down, row).size());
  }
  return width;
}

/// Returns how many sequence lengths fit beside labels of this width; at least 1.
std::size_t max_columns(std::size_t label_width) {
  return std::max<std::size_t>(1, (terminal_width() - std::min(label_width, terminal_width())) / cell_width);
}

/// Returns a table of at most max_columns() sequence lengths, starting at `first`.
std::string table(const CrossoverMap& map, MapPlace place, std::size_t first) {
  const std::vector<std::string> names = short_names(map);
  const MapAxis down = row_axis(map);
  const std::size_t label_width = label_width_of(map);
  const std::size_t end = std::min(first + max_columns(label_width), map.values(MapAxis::seq).size());
  place[index_of(down)] = 0;
  std::string heading;
  for (const MapAxis axis : {MapAxis::ranks, MapAxis::network}) {
    if (axis != down && map.values(axis).size() > 1) {
      heading += (heading.empty() ? "" : ", ") + value_in_words(map, axis, place[index_of(axis)]);
    }
  }
  std::string text = heading.size() > label_width ? heading + "\n" : "";
  text += fmt::format("{:<{}}", heading.size() > label_width ? "" : heading, label_width);
  for (std::size_t s = first; s < end; ++s) {
    text += fmt::format("{:>{}}", value_in_words(map, MapAxis::seq, s), cell_width);
  }
  text += "\n";
  for (std::size_t row = 0; row < map.values(down).size(); ++row) {
    place[index_of(down)] = row;
    std::string line = fmt::format("{:<{}}", value_in_words(map, down, row), label_width);
    for (std::size_t s = first; s < end; ++s) {
      place[index_of(MapAxis::seq)] = s;
      line += fmt::format("{:>{}}", cell_text(map, names, map.at(place)), cell_width);
    }
    text += line + "\n";
  }
  return text;
}

std::string tables(const CrossoverMap& map) {
  const MapAxis down = row_axis(map);
  const std::size_t columns = max_columns(label_width_of(map));
  const auto extent = [&](MapAxis axis) { return axis == down ? 1 : map.values(axis).size(); };
  std::string text;
  for (std::size_t ranks = 0; ranks < extent(MapAxis::ranks); ++ranks) {
    for (std::size_t network = 0; network < extent(MapAxis::network); ++network) {
      for (std::size_t first = 0; first < map.values(MapAxis::seq).size(); first += columns) {
        MapPlace place{};
        place[index_of(MapAxis::ranks)] = ranks;
        place[index_of(MapAxis::network)] = network;
        text += "\n" + table(map, place, first);
      }
    }
  }
  return text;
}

std::string legend(const CrossoverMap& map, const VerdictRule& rule) {
  std::string text;
  const std::vector<std::string> names = short_names(map);
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", names[i], map.strategies[i]);
  }
  return wrapped(fmt::format("{}. After the winner: percent of time saved against the next best strategy / against "
                             "{}. ~ a tie: a win needs {}. - no result.",
                             text, baseline_in_words(map), rule_in_words(rule)),
                 "", "");
}

/// Returns a sentence such as "Of 12 points, commfuse wins 8, 4 tie (commfuse and sliced 4)."
std::string count_in_words(const CrossoverMap& map) {
  VerdictCount count;
  for (const MapCell& cell : map.cells) {
    std::vector<std::string> front{cell.winner};
    front.insert(front.end(), cell.tied.begin(), cell.tied.end());
    count.add(std::move(front));
  }
  return wrapped(fmt::format("Of {} points, {}.", map.cells.size(), count.in_words()), "", "");
}

std::string changes(const CrossoverMap& map) {
  std::string text;
  std::size_t shown = 0;
  std::size_t omitted = 0;
  std::size_t close = 0;
  for (const Crossing& crossing : map.crossings) {
    if (!crossing.clear) {
      ++close;
    } else if (shown == max_changes) {
      ++omitted;
    } else {
      ++shown;
      const std::string where = place_in_words(map, crossing.place, crossing.axis);
      text += wrapped(fmt::format("along {}{}{}: {}", name_of(crossing.axis), where.empty() ? "" : ", ", where,
                                  crossing_in_words(map, crossing)),
                      "  ", "    ");
    }
  }
  text =
      (text.empty() ? "No clear change of winner between neighbouring points.\n" : "Where the winner changes\n" + text);
  if (omitted > 0) {
    text += fmt::format("  and {} more, listed in CSV and JSON\n", omitted);
  }
  if (close > 0) {
    text += wrapped(
        fmt::format("{} {} between strategies that tie at one end or run at only one end; CSV and JSON list them.",
                    counted(close, "more change"), close == 1 ? "is" : "are"),
        "", "");
  }
  return text;
}

std::string optional_number(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

/// Formats the setting of a map and a place in it as in results: seq and ranks as counts, bandwidths as requested and
/// in GB/s.
std::string place_cells(const CrossoverMap& map, const MapPlace& place) {
  const auto value = [&](MapAxis axis) -> const MapValue& { return map.values(axis)[place[index_of(axis)]]; };
  const auto rate = [&](MapAxis axis) {
    return value(axis).value > 1.0 ? fmt::format("{}", value(axis).value / 1e9) : std::string{};
  };
  return fmt::format("{},{},{},{},{},{},{}", csv_text(map.setting), value(MapAxis::ranks).value,
                     value(MapAxis::seq).value, csv_text(value(MapAxis::link).text), rate(MapAxis::link),
                     csv_text(value(MapAxis::network).text), rate(MapAxis::network));
}

constexpr std::string_view place_columns =
    "setting,ranks,seq,link_bandwidth,link_rate_gb_s,network_bandwidth,network_rate_gb_s";

Json place_json(const CrossoverMap& map, const MapPlace& place) {
  Json json;
  for (const MapAxis axis : {MapAxis::ranks, MapAxis::seq, MapAxis::link, MapAxis::network}) {
    const MapValue& value = map.values(axis)[place[index_of(axis)]];
    json[std::string{name_of(axis)}] = is_count(axis) ? Json(static_cast<std::int64_t>(value.value)) : Json(value.text);
  }
  return json;
}

Json maybe(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

/// Returns where the winner changes: a whole number on an axis of counts, a text on an axis of bandwidths, and null
/// where no value is known.
Json crossing_json(const CrossoverMap& map, const Crossing& crossing) {
  if (!crossing.at) {
    return {};
  }
  return is_count(crossing.axis) ? Json(std::llround(*crossing.at)) : Json(crossing_value(map, crossing));
}

Json map_as_json(const CrossoverMap& map) {
  Json json{{"setting", map.setting}, {"cells", Json::array()}, {"crossovers", Json::array()}};
  for (const MapCell& cell : map.cells) {
    Json object = place_json(map, cell.place);
    object.update({{"winner", cell.winner},
                   {"time_us", to_microseconds(cell.time)},
                   {"second", cell.second.empty() ? Json() : Json(cell.second)},
                   {"saved", maybe(cell.saved)},
                   {"saved_of_serial", maybe(cell.of_serial)},
                   {"baseline", cell.baseline.empty() ? Json() : Json(cell.baseline)},
                   {"saved_of_baseline", maybe(cell.of_baseline)},
                   {"too_close", !cell.wins()},
                   {"ties", cell.tied},
                   {"probability", maybe(cell.probability)}});
    json["cells"].push_back(std::move(object));
  }
  for (const Crossing& crossing : map.crossings) {
    MapPlace above = crossing.place;
    ++above[index_of(crossing.axis)];
    json["crossovers"].push_back({{"axis", name_of(crossing.axis)},
                                  {"below", place_json(map, crossing.place)},
                                  {"above", place_json(map, above)},
                                  {"winner_below", crossing.below},
                                  {"winner_above", crossing.above},
                                  {"at", crossing_json(map, crossing)},
                                  {"clear", crossing.clear}});
  }
  return json;
}

}  // namespace

std::string map_text(std::span<const CrossoverMap> maps, const VerdictRule& rule) {
  if (maps.empty()) {
    return wrapped(
        "No map: it needs two strategies with results at two points that differ in seq, ranks, link_bandwidth or "
        "network_bandwidth.",
        "", "");
  }
  std::string text;
  for (const CrossoverMap& map : maps) {
    text += (text.empty() ? "" : "\n") + wrapped(heading_of(map), "", "  ") + tables(map) + "\n" + legend(map, rule) +
            count_in_words(map) + "\n" + changes(map);
  }
  return text;
}

std::string map_csv(std::span<const CrossoverMap> maps) {
  std::string text = fmt::format(
      "{},winner,time_us,second,saved,saved_of_serial,too_close,ties,probability,baseline,saved_of_baseline\r\n",
      place_columns);
  for (const CrossoverMap& map : maps) {
    for (const MapCell& cell : map.cells) {
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\r\n", place_cells(map, cell.place), csv_text(cell.winner),
                          to_microseconds(cell.time), csv_text(cell.second), optional_number(cell.saved),
                          optional_number(cell.of_serial), !cell.wins(),
                          csv_text(fmt::format("{}", fmt::join(cell.tied, "+"))), optional_number(cell.probability),
                          csv_text(cell.baseline), optional_number(cell.of_baseline));
    }
  }
  return text;
}

std::string crossings_csv(std::span<const CrossoverMap> maps) {
  std::string text = fmt::format("{},axis,next,winner,winner_next,at,clear\r\n", place_columns);
  for (const CrossoverMap& map : maps) {
    for (const Crossing& crossing : map.crossings) {
      const MapValue& next = map.values(crossing.axis)[crossing.place[index_of(crossing.axis)] + 1];
      const Json at = crossing_json(map, crossing);
      text += fmt::format("{},{},{},{},{},{},{}\r\n", place_cells(map, crossing.place), name_of(crossing.axis),
                          is_count(crossing.axis) ? fmt::format("{}", next.value) : csv_text(next.text),
                          csv_text(crossing.below), csv_text(crossing.above),
                          at.is_string() ? csv_text(at.get<std::string>())
                          : at.is_null() ? ""
                                         : at.dump(),
                          crossing.clear);
    }
  }
  return text;
}

std::string map_json(std::span<const CrossoverMap> maps, std::span<const Scaling> scalings) {
  Json json{{"schema", "commfuse.map/1"}, {"maps", Json::array()}, {"scaling", Json::array()}};
  for (const CrossoverMap& map : maps) {
    json["maps"].push_back(map_as_json(map));
  }
  for (const Scaling& scaling : scalings) {
    json["scaling"].push_back(
        {{"setting", scaling.setting},
         {"kind", scaling.kind == ScalingKind::strong ? "strong" : "weak"},
         {"ranks", {scaling.fewest_ranks.ranks, scaling.max_ranks.ranks}},
         {"batch", {scaling.fewest_ranks.batch, scaling.max_ranks.batch}},
         {"seq", {scaling.fewest_ranks.seq, scaling.max_ranks.seq}},
         {"time_us", {to_microseconds(scaling.fewest_ranks.time), to_microseconds(scaling.max_ranks.time)}},
         {"efficiency", scaling.efficiency}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace commfuse::reports
