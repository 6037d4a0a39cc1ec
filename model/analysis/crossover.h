// SPDX-License-Identifier: Apache-2.0
// Which strategy wins where, over sequence, ranks and bandwidths, and between which points the winner changes.
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

/// As settings call it: "seq", "link_bandwidth", "network_bandwidth", "ranks".
std::string_view name_of(MapAxis axis);

/// A value on an axis, above 0: tokens, ranks, or bytes a second; and as people wrote it.
struct MapValue {
  double value = 1.0;
  std::string text;
};
/// One a MapAxis.
using MapPoint = std::array<MapValue, all_map_axes.size()>;

/// What a strategy takes at a point.
struct MapEntry {
  std::string setting;  ///< All else that was asked, in words: only equal ones compare.
  MapPoint at;
  std::string strategy;           ///< Its schedules count as one family: the fastest stands for it.
  Duration time{};                ///< Above 0.
  std::optional<double> error{};  ///< Contender's, as the next.
  std::optional<double> win_probability{};
};

/// Place of a value on each axis.
using MapPlace = std::array<std::size_t, all_map_axes.size()>;

struct MapCell {
  MapPlace place{};
  std::string winner;
  Duration time{};
  std::string second;                   ///< The fastest other family; empty where there is none.
  std::optional<double> saved{};        ///< Share of the second's time that the winner saves.
  std::optional<double> of_serial{};    ///< The same of serial, also where serial wins; nothing where it was not run.
  std::vector<std::string> tied{};      ///< Families that tie with the fastest one, which is `winner`; none: it wins.
  std::optional<double> probability{};  ///< Verdict's.

  [[nodiscard]] bool wins() const { return tied.empty(); }
};

/// Between two neighbours on an axis the winner changes.
struct Crossing {
  MapAxis axis = MapAxis::seq;
  MapPlace place{};  ///< Of the lower neighbour; the upper one is next on the axis.
  std::string below;
  std::string above;
  /// Where both take the same, by straight lines between the neighbours in the logarithms of value and time. Nothing of
  /// ranks, which have no values between; where one of the two was not run at both; and where a third family would be
  /// faster there, so that the line tells of no change that happens.
  std::optional<double> at{};
  bool clear = false;  ///< At both neighbours the winner wins against the other of the two.
};

struct CrossoverMap {
  std::string setting;
  std::array<std::vector<MapValue>, all_map_axes.size()> axes;  ///< Ascending.
  std::vector<MapCell> cells;                                   ///< Those with a result: seq fastest, then link, ...
  std::vector<Crossing> crossings;                              ///< By axis, then as the cells.
  std::vector<std::string> strategies;                          ///< That win somewhere, by name.

  [[nodiscard]] const std::vector<MapValue>& values(MapAxis axis) const { return axes[static_cast<std::size_t>(axis)]; }
  /// Nullptr where there is no result.
  [[nodiscard]] const MapCell* at(const MapPlace& place) const;
};

/// One a setting that has two points and two families at least, in the order in which they first come. Requires times
/// and values above 0.
/// Whether entries of one setting make a map: several families along an axis. It may be known before all were looked
/// at.
class MapTest {
 public:
  /// Whether those so far do.
  bool add(const MapEntry& entry);
  [[nodiscard]] bool is_map() const { return families_ && axis_; }

 private:
  std::optional<MapEntry> first_;
  bool families_ = false;
  bool axis_ = false;
};

std::vector<CrossoverMap> crossover_maps(std::span<const MapEntry> entries, const VerdictRule& rule = {});

}  // namespace commfuse
