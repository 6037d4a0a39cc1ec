// SPDX-License-Identifier: Apache-2.0
#include "reports/crossover.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/check.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "reports/comparison.h"
#include "reports/plan_names.h"
#include "reports/plan_verdicts.h"
#include "reports/point_rows.h"
#include "reports/step_pays.h"

namespace commfuse::reports {

namespace {

/// Formats the unusual settings of a row, each after a comma: ", launch graph".
std::string unmapped(const ResultRow& row) {
  std::string text;
  for (const std::string& words : unusual(row)) {
    text += ", " + words;
  }
  return text;
}

/// Returns a value on a bandwidth axis. An unknown rate has the value 1, which no real rate has.
MapValue bandwidth(const std::optional<double>& rate, const std::string& requested) {
  return {rate.value_or(1.0), requested};
}

MapValue count(std::int64_t value) { return {static_cast<double>(value), format_count(value)}; }

bool can_be_mapped(const StepRow& row) { return row.feasible() && !is_bound(row) && fits(row); }

/// Formats the framework of a plan, and unusual settings that rows of layers have too.
std::string run_settings_of(const StepRow& row) {
  const bool has_usual_sums = !row.has("all_reduce_kernel") || row.text("all_reduce_kernel") == "nccl";
  return (row.has("framework") ? ", framework " + row.text("framework") : std::string{}) +
         (has_usual_sums ? std::string{} : ", all-reduce of " + row.text("all_reduce_kernel")) +
         unusual_run_settings(row);
}

/// Formats a plan's layout without its tensor degree, then its framework and unusual settings and, for a training step,
/// its ZeRO stage, micro-batch and recomputation.
std::string layout_of(const StepRow& row) {
  std::string text;
  for (const char* axis : {"pipeline", "interleave", "data", "context", "ulysses", "experts"}) {
    text += row.count(axis) == 1 ? "" : fmt::format(", {} {}", axis, row.count(axis));
  }
  text += passes_keys_around(row) ? ", ring" : "";
  text += row.text("pipeline_schedule") == "1f1b" ? "" : ", " + row.text("pipeline_schedule");
  text += run_settings_of(row);
  return row.text("scope") != "step" ? text
                                     : text + fmt::format(", zero {}, micro-batch {}, recompute {}", row.count("zero"),
                                                          row.count("micro_batch"), row.text("recompute"));
}

std::optional<double> number_or_nothing(const StepRow& row, std::string_view name) {
  return row.has(name) ? std::optional(row.number(name)) : std::nullopt;
}

std::optional<double> rate_of(const StepRow& row, std::string_view name) {
  return row.has(name) ? std::optional(1e9 * row.number(name)) : std::nullopt;
}

/// Returns the row's entry in a map. A plan that does not fit in memory has an entry without a result, so that the map
/// shows its place. Returns nothing for a bound, and for a row without a result.
std::optional<MapEntry> map_entry_of(const StepRow& row) {
  if (!row.feasible() || is_bound(row)) {
    return std::nullopt;
  }
  return MapEntry{
      .setting = fmt::format("{} {} on {}{}, batch {}, {}", row.text("model"), row.text("scope"), row.text("hardware"),
                             layout_of(row), row.count("batch"), row.text("dtype")),
      .at = {count(row.count("seq")), bandwidth(rate_of(row, "link_rate_gb_s"), row.text("link_bandwidth")),
             bandwidth(rate_of(row, "network_rate_gb_s"), row.text("network_bandwidth")), count(row.count("tensor"))},
      .strategy = row.text("strategy"),
      .time = fits(row) ? from_seconds(1e-3 * row.number("time_ms")) : Duration::zero(),
      .error = number_or_nothing(row, "time_error"),
      .win_probability = number_or_nothing(row, "win_probability"),
      .is_framework = is_framework(row)};
}

/// Formats three digits, and all digits before the decimal point: "1.5", "37.5", "2048".
std::string three_digits(double number) {
  constexpr double first_exponent = 999.5;  // Larger numbers would have an exponent.
  return number < first_exponent ? fmt::format("{:.3g}", number) : fmt::format("{:.0f}", number);
}

std::string kind_in_words(const Scaling& scaling) {
  return scaling.kind == ScalingKind::strong
             ? fmt::format("Strong scaling: the work is fixed. From {} to {} ranks, 100% is {} times the speed:",
                           scaling.fewest_ranks.ranks, scaling.max_ranks.ranks,
                           three_digits(static_cast<double>(scaling.max_ranks.ranks) /
                                        static_cast<double>(scaling.fewest_ranks.ranks)))
             : fmt::format(
                   "Weak scaling: {} tokens per rank. From {} to {} ranks, 100% is the same time:",
                   format_count(scaling.fewest_ranks.batch * scaling.fewest_ranks.seq / scaling.fewest_ranks.ranks),
                   scaling.fewest_ranks.ranks, scaling.max_ranks.ranks);
}

/// Formats the common work, "seq 8K "; weak scaling has none.
std::string work_in_words(const Scaling& scaling) {
  if (scaling.kind == ScalingKind::weak) {
    return {};
  }
  return fmt::format(
      "{}seq {} ",
      scaling.fewest_ranks.batch == 1 ? "" : fmt::format("batch {} x ", format_count(scaling.fewest_ranks.batch)),
      format_count(scaling.fewest_ranks.seq));
}

/// Formats a value in the style of the value below it: as a factor, a rate or a count.
std::string as_written(MapAxis axis, const MapValue& below, double value) {
  if (axis == MapAxis::seq || axis == MapAxis::ranks) {
    constexpr double kibi = 1024.0;
    return value < kibi ? fmt::format("{:.0f}", value)
                        : fmt::format("{:.{}f}K", value / kibi, value < 100.0 * kibi ? 1 : 0);
  }
  if (below.text.starts_with('x')) {
    constexpr double first_exponent = 99.5;
    const double factor = *parse_number(below.text.substr(1)) * value / below.value;
    return factor < first_exponent ? fmt::format("x{:.2g}", factor) : fmt::format("x{:.0f}", factor);
  }
  return three_digits(value / 1e9) + " GB/s";
}

}  // namespace

std::string baseline_in_words(const CrossoverMap& map) {
  std::vector<std::string_view> names;
  for (const MapCell& cell : map.cells) {
    if (!cell.baseline.empty() && std::ranges::find(names, cell.baseline) == names.end()) {
      names.emplace_back(cell.baseline);
    }
  }
  return names.empty() ? "serial" : fmt::format("{}", fmt::join(names, " or "));
}

std::string map_setting_of(const ResultRow& row) {
  return fmt::format("{} {} on {}, batch {}, {}{}", row.model, row.scope, row.hardware, format_count(row.batch),
                     row.dtype, unmapped(row));
}

std::optional<MapEntry> map_entry_of(const ResultRow& row) {
  if (!row.feasible() || row.bound || row.analysis.critical.makespan <= Duration::zero()) {
    return std::nullopt;
  }
  return MapEntry{map_setting_of(row),
                  {count(row.seq), bandwidth(row.link_rate, row.link_bandwidth),
                   bandwidth(row.network_rate, row.network_bandwidth), count(row.ranks)},
                  row.strategy,
                  row.analysis.critical.makespan,
                  row.makespan_error,
                  row.win_probability};
}

std::vector<CrossoverMap> maps_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::vector<MapEntry> entries;
  for (const ResultRow& row : rows) {
    if (std::optional<MapEntry> entry = map_entry_of(row)) {
      entries.push_back(*std::move(entry));
    }
  }
  return crossover_maps(entries, rule);
}

std::vector<CrossoverMap> maps_of(std::span<const StepRow> rows, const VerdictRule& rule) {
  std::vector<MapEntry> entries;
  for (const StepRow& row : rows) {
    if (std::optional<MapEntry> entry = map_entry_of(row)) {
      entries.push_back(*std::move(entry));
    }
  }
  return crossover_maps(entries, rule);
}

void FastestPoints::add(ScalingPoint point) {
  const auto [known, is_new] =
      known_.try_emplace(std::tuple(point.setting, point.ranks, point.batch, point.seq), points_.size());
  if (is_new) {
    points_.push_back(std::move(point));
  } else {
    points_[known->second].time = std::min(points_[known->second].time, point.time);
  }
}

void FastestPoints::add(const ResultRow& row) {
  if (row.feasible() && !row.bound && row.analysis.critical.makespan > Duration::zero()) {
    add({fmt::format("{} {} on {}, {}{}", row.model, row.scope, machine_in_words(row), row.dtype, unmapped(row)),
         row.ranks, row.batch, row.seq, row.analysis.critical.makespan});
  }
}

std::vector<Scaling> scalings_of(std::span<const ResultRow> rows) {
  FastestPoints fastest;
  for (const ResultRow& row : rows) {
    fastest.add(row);
  }
  return fastest.scalings();
}

std::vector<Scaling> scalings_of(std::span<const StepRow> rows) {
  FastestPoints fastest;
  for (const StepRow& row : rows) {
    if (can_be_mapped(row)) {
      fastest.add(
          {fmt::format(
               "{} {} on {}, {}{}", row.text("model"), row.text("scope"),
               machine_in_words(row.text("hardware"), row.text("link_bandwidth"), row.text("network_bandwidth")),
               row.text("dtype"), run_settings_of(row)),
           row.count("gpus"), row.count("batch"), row.count("seq"), from_seconds(1e-3 * row.number("time_ms"))});
    }
  }
  return fastest.scalings();
}

std::string value_in_words(const CrossoverMap& map, MapAxis axis, std::size_t index) {
  const std::string& text = map.values(axis)[index].text;
  switch (axis) {
    case MapAxis::seq: return "seq " + text;
    case MapAxis::link: return "links " + text;
    case MapAxis::network: return "network " + text;
    case MapAxis::ranks: return "ranks " + text;
  }
  return text;
}

std::string place_in_words(const CrossoverMap& map, const MapPlace& place, MapAxis omitted) {
  std::string text;
  for (const MapAxis axis : {MapAxis::ranks, MapAxis::network, MapAxis::link, MapAxis::seq}) {
    if (axis != omitted && map.values(axis).size() > 1) {
      text += (text.empty() ? "" : ", ") + value_in_words(map, axis, place[static_cast<std::size_t>(axis)]);
    }
  }
  return text;
}

std::string heading_of(const CrossoverMap& map) {
  std::string text = map.setting;
  for (const MapAxis axis : {MapAxis::ranks, MapAxis::link, MapAxis::network}) {
    if (map.values(axis).size() == 1 && map.values(axis).front().text != "x1") {
      text += ", " + value_in_words(map, axis, 0);
    }
  }
  return text;
}

std::string crossing_value(const CrossoverMap& map, const Crossing& crossing) {
  check(crossing.at.has_value(), "the crossing has a value");
  const std::size_t below = crossing.place[static_cast<std::size_t>(crossing.axis)];
  return as_written(crossing.axis, map.values(crossing.axis)[below], *crossing.at);
}

std::string crossing_in_words(const CrossoverMap& map, const Crossing& crossing) {
  const std::vector<MapValue>& values = map.values(crossing.axis);
  const std::size_t below = crossing.place[static_cast<std::size_t>(crossing.axis)];
  const std::string bracket = fmt::format("{} and {}", values[below].text, values[below + 1].text);
  return crossing.at ? fmt::format("{} below about {}, {} above (between {})", crossing.below,
                                   crossing_value(map, crossing), crossing.above, bracket)
                     : fmt::format("{} below, {} above, somewhere between {}", crossing.below, crossing.above, bracket);
}

std::vector<std::string> short_names(const CrossoverMap& map) {
  std::vector<std::string> names;
  for (const std::string& strategy : map.strategies) {
    std::size_t letters = 2;
    const auto is_taken = [&](const std::string& other) {
      return other != strategy && other.starts_with(strategy.substr(0, letters));
    };
    while (letters < strategy.size() && std::any_of(map.strategies.begin(), map.strategies.end(), is_taken)) {
      ++letters;
    }
    names.push_back(strategy.substr(0, letters));
  }
  return names;
}

std::string scaling_text(std::span<const Scaling> scalings) {
  const auto is_in_group = [](const Scaling& a, const Scaling& b) {
    return a.kind == b.kind && a.setting == b.setting && a.fewest_ranks.ranks == b.fewest_ranks.ranks &&
           a.max_ranks.ranks == b.max_ranks.ranks;
  };
  std::string text;
  std::string last_kind;
  for (auto first = scalings.begin(); first != scalings.end();) {
    const auto end =
        std::find_if(first, scalings.end(), [&](const Scaling& scaling) { return !is_in_group(scaling, *first); });
    const std::string kind = kind_in_words(*first);
    text += kind == last_kind ? "" : wrapped(kind, "", "");
    last_kind = kind;
    std::string line = first->setting + ":";
    for (; first != end; ++first) {
      line +=
          fmt::format(" {}{:.0f}%{}", work_in_words(*first), 100.0 * first->efficiency, first + 1 == end ? "" : ",");
    }
    text += wrapped(line, "  ", "    ");
  }
  return text;
}

}  // namespace commfuse::reports
