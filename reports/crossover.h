// SPDX-License-Identifier: Apache-2.0
// Crossover maps: the winner over sequence, ranks and bandwidths, its lead, and where the winner changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "model/analysis/crossover.h"
#include "model/analysis/scaling.h"
#include "model/record/result.h"
#include "model/record/step_row.h"

namespace commfuse::reports {

/// Returns maps of the rows that have a result; bounds cannot win. Whole models that do not fit in memory only add
/// their place to a map. The ranks of whole models are the tensor-parallel ranks.
std::vector<CrossoverMap> maps_of(std::span<const ResultRow> rows, const VerdictRule& rule = {});
std::vector<CrossoverMap> maps_of(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Returns the names of the baselines of a map: "serial", or "megatron-lm or serial"; "serial" if it has none.
std::string baseline_in_words(const CrossoverMap& map);

/// Formats the settings of a row that are not axes of a map: rows with equal text share a map.
std::string map_setting_of(const ResultRow& row);
/// Returns a row's entry in a map; nothing for a bound, and for a row that has no result or takes no time.
std::optional<MapEntry> map_entry_of(const ResultRow& row);

/// Returns scalings of the fastest row of every point, without whole models that do not fit in memory. The ranks of
/// whole models are all their GPUs.
std::vector<Scaling> scalings_of(std::span<const ResultRow> rows);
std::vector<Scaling> scalings_of(std::span<const StepRow> rows);

/// Keeps the fastest row of every point, from rows that come one by one.
class FastestPoints {
 public:
  /// Ignores bounds, and rows that have no result or take no time.
  void add(const ResultRow& row);
  void add(ScalingPoint point);
  [[nodiscard]] std::vector<Scaling> scalings() const { return commfuse::scalings_of(points_); }

 private:
  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>, std::size_t> known_;
  std::vector<ScalingPoint> points_;
};

/// Formats the value at which the winner changes, in the style of its axis: "3.1K". Requires crossing.at.
std::string crossing_value(const CrossoverMap& map, const Crossing& crossing);
/// Describes a crossing, such as "sliced below about 3.1K, commfuse above (between 2K and 4K)".
std::string crossing_in_words(const CrossoverMap& map, const Crossing& crossing);
/// Formats the values at `place` of all varying axes except `omitted`: "ranks 8, links x2"; empty if no other axis
/// varies.
std::string place_in_words(const CrossoverMap& map, const MapPlace& place, MapAxis omitted);
/// Formats the setting, then ranks and bandwidths that do not vary, without bandwidths at the machine's own rate: "...,
/// ranks 8, links x2".
std::string heading_of(const CrossoverMap& map);
/// Formats a value of an axis, such as "links x2" or "seq 4K".
std::string value_in_words(const CrossoverMap& map, MapAxis axis, std::size_t index);
/// Returns names of two or more letters, such as "co", that distinguish the winners of a map, in the order of
/// map.strategies.
std::vector<std::string> short_names(const CrossoverMap& map);

/// Returns tables of winners, at most 80 columns wide, and below them the ties by name and the clear changes; a
/// sentence if there is no map.
std::string map_text(std::span<const CrossoverMap> maps, const VerdictRule& rule = {});
/// Returns headings such as "Strong scaling: ..." and efficiencies; empty if there are no scalings.
std::string scaling_text(std::span<const Scaling> scalings);

/// Returns one line per cell.
std::string map_csv(std::span<const CrossoverMap> maps);
/// Returns one line per crossing.
std::string crossings_csv(std::span<const CrossoverMap> maps);
/// Returns {"schema": "commfuse.map/1", "maps": [...], "scaling": [...]}.
std::string map_json(std::span<const CrossoverMap> maps, std::span<const Scaling> scalings);

}  // namespace commfuse::reports
