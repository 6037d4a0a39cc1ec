// SPDX-License-Identifier: Apache-2.0
// Maps of the winning strategy over sequence length, ranks and bandwidths, with the points between which the winner
// changes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/units.h"

namespace commfuse {

enum class MapAxis : std::uint8_t { seq, link, network, ranks };
inline constexpr std::array all_map_axes{MapAxis::seq, MapAxis::link, MapAxis::network, MapAxis::ranks};

/// Returns the name of the setting: "seq", "link_bandwidth", "network_bandwidth" or "ranks".
std::string_view name_of(MapAxis axis);

/// Value on an axis, above 0 (tokens, ranks, or bytes per second), and its text as the user wrote it.
struct MapValue {
  double value = 1.0;
  std::string text;
};
/// One value per MapAxis.
using MapPoint = std::array<MapValue, all_map_axes.size()>;

/// Time of a strategy at one point. An entry without a time has no result: it only adds its values to the axes.
struct MapEntry {
  std::string setting;  ///< All other settings, in words; only entries with equal settings are compared.
  MapPoint at;
  std::string strategy;           ///< The schedules of a strategy count as one family, represented by the fastest.
  Duration time{};                ///< Above 0; 0 without a result.
  std::optional<double> error{};  ///< Relative standard error, see Contender.
  std::optional<double> win_probability{};
  bool is_framework = false;  ///< The step as a framework runs it, the baseline of its point.
};

/// Index of the value on each axis.
using MapPlace = std::array<std::size_t, all_map_axes.size()>;

/// The fastest family with overlap, compared with the baseline: the framework's own step, or else serial.
struct MapSaving {
  std::string overlap;
  std::string baseline;
  double saved = 0.0;     ///< Share of the baseline's time; below 0 if the overlap takes longer.
  bool is_close = false;  ///< The two are too close to call.
};

struct MapCell {
  MapPlace place{};
  std::string winner;
  Duration time{};
  std::string second;             ///< Fastest other family; empty when there is no other.
  std::optional<double> saved{};  ///< Share of the time of `second` that the winner saves.
  /// Share of serial's time that the winner saves, even where serial wins; nullopt when serial was not run.
  std::optional<double> of_serial{};
  std::string baseline{};  ///< The framework's own step, or else serial; empty when neither was run.
  /// Share of the baseline's time that the winner saves; nullopt without a baseline.
  std::optional<double> of_baseline{};
  std::optional<MapSaving> saving{};  ///< Nullopt without a baseline or without a family that overlaps.
  /// Families that tie with the fastest one, which is `winner`; empty when `winner` wins.
  std::vector<std::string> tied{};
  std::optional<double> probability{};  ///< Probability of the verdict.

  [[nodiscard]] bool wins() const { return tied.empty(); }
};

/// Two neighbours on an axis between which the winner changes.
struct Crossing {
  MapAxis axis = MapAxis::seq;
  MapPlace place{};  ///< Place of the lower neighbour; the upper neighbour is next on the axis.
  std::string below;
  std::string above;
  /// Value at which both winners take the same time, interpolated linearly between the neighbours in the logarithms of
  /// value and time. Empty on the axis of ranks, which has no values in between; when one of the two was not run at
  /// both neighbours; and when a third family would be faster at that value, so that the winner does not change there.
  std::optional<double> at{};
  bool clear = false;  ///< At both neighbours, the winner wins against the winner at the other neighbour.
};

struct CrossoverMap {
  std::string setting;
  std::array<std::vector<MapValue>, all_map_axes.size()> axes;  ///< Ascending.
  std::vector<MapCell> cells;           ///< Cells with a result; seq varies fastest, then link bandwidth, ...
  std::vector<Crossing> crossings;      ///< Sorted by axis, then in the order of the cells.
  std::vector<std::string> strategies;  ///< Families that are `winner` of some cell, by name.

  [[nodiscard]] const std::vector<MapValue>& values(MapAxis axis) const { return axes[static_cast<std::size_t>(axis)]; }
  /// Returns nullptr when there is no result at this place.
  [[nodiscard]] const MapCell* at(const MapPlace& place) const;
};

/// Tests whether the entries of one setting make a map: several families, and several values on some axis. The result
/// may be known before all entries are added.
class MapTest {
 public:
  /// Adds an entry and returns true once the entries make a map.
  bool add(const MapEntry& entry);
  [[nodiscard]] bool is_map() const { return families_ && axis_; }

 private:
  std::optional<MapEntry> first_;
  bool families_ = false;
  bool axis_ = false;
};

/// Returns one map for each setting whose entries make a map (MapTest), in the order of the settings' first entries.
std::vector<CrossoverMap> crossover_maps(std::span<const MapEntry> entries, const VerdictRule& rule = {});

}  // namespace commfuse
