// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/crossover.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

std::size_t index_of(MapAxis axis) { return static_cast<std::size_t>(axis); }

bool has_result(const MapEntry& entry) { return entry.time > Duration::zero(); }

/// Fastest schedule of each family at one point.
using FamilyEntries = std::map<std::string, const MapEntry*>;

Contender contender_of(const MapEntry& entry) { return {to_seconds(entry.time), entry.error, entry.win_probability}; }

void add_value(std::vector<MapValue>& values, const MapValue& value) {
  check(value.value > 0.0, "values of a map are above 0");
  const auto position = std::lower_bound(values.begin(), values.end(), value.value,
                                         [](const MapValue& known, double wanted) { return known.value < wanted; });
  if (position == values.end() || position->value != value.value) {
    values.insert(position, value);
  }
}

/// Builds the map of one setting.
class Builder {
 public:
  Builder(std::string setting, const VerdictRule& rule) : rule_(rule) { map_.setting = std::move(setting); }

  void add(const MapEntry& entry) {
    check(entry.time >= Duration::zero(), "the time of a strategy is not negative");
    if (has_result(entry)) {
      entries_.push_back(&entry);
    }
    for (const MapAxis axis : all_map_axes) {
      add_value(map_.axes[index_of(axis)], entry.at[index_of(axis)]);
    }
  }

  CrossoverMap build() {
    for (const MapEntry* entry : entries_) {
      const MapEntry*& known = families_by_place_[reversed(place_of(entry->at))][entry->strategy];
      known = known == nullptr || entry->time < known->time ? entry : known;
    }
    std::set<std::string> winners;
    for (const auto& [place, entries] : families_by_place_) {
      map_.cells.push_back(cell_of(reversed(place), entries));
      winners.insert(map_.cells.back().winner);
    }
    map_.strategies.assign(winners.begin(), winners.end());
    for (const MapAxis axis : all_map_axes) {
      for (const MapCell& cell : map_.cells) {
        add_crossing(axis, cell);
      }
    }
    return std::move(map_);
  }

  [[nodiscard]] bool is_map() const {
    MapTest test;
    return std::any_of(entries_.begin(), entries_.end(), [&](const MapEntry* entry) { return test.add(*entry); });
  }

 private:
  /// Reverses the order of axes, so that the first axis varies fastest in the order of places.
  static MapPlace reversed(MapPlace place) {
    std::reverse(place.begin(), place.end());
    return place;
  }

  [[nodiscard]] MapPlace place_of(const MapPoint& point) const {
    MapPlace place{};
    for (std::size_t axis = 0; axis < place.size(); ++axis) {
      const auto value = std::find_if(map_.axes[axis].begin(), map_.axes[axis].end(),
                                      [&](const MapValue& known) { return known.value == point[axis].value; });
      place[axis] = static_cast<std::size_t>(value - map_.axes[axis].begin());
    }
    return place;
  }

  [[nodiscard]] MapCell cell_of(const MapPlace& place, const FamilyEntries& entries) const {
    std::vector<const MapEntry*> families;
    std::vector<Contender> contenders;
    for (const auto& [strategy, entry] : entries) {
      families.push_back(entry);
      contenders.push_back(contender_of(*entry));
    }
    const Verdict verdict = verdict_of(contenders, rule_);
    const MapEntry& fastest = *families[verdict.order.front()];
    MapCell cell{.place = place, .winner = fastest.strategy, .time = fastest.time};
    cell.probability = verdict.probability;
    for (std::size_t i = 1; i < verdict.front.size(); ++i) {
      cell.tied.push_back(families[verdict.front[i]]->strategy);
    }
    if (families.size() > 1) {
      const MapEntry& second = *families[verdict.order[1]];
      cell.second = second.strategy;
      cell.saved = 1.0 - to_seconds(cell.time) / to_seconds(second.time);
    }
    if (const auto serial = entries.find("serial"); serial != entries.end()) {
      cell.of_serial = 1.0 - to_seconds(cell.time) / to_seconds(serial->second->time);
    }
    if (const MapEntry* const baseline = baseline_of(entries)) {
      cell.baseline = baseline->strategy;
      cell.of_baseline = 1.0 - to_seconds(cell.time) / to_seconds(baseline->time);
      cell.saving = saving_of(cell, entries, *baseline);
    }
    return cell;
  }

  /// Returns the framework's own step, or else serial; null without both.
  static const MapEntry* baseline_of(const FamilyEntries& entries) {
    for (const auto& [strategy, entry] : entries) {
      if (entry->is_framework) {
        return entry;
      }
    }
    const auto serial = entries.find("serial");
    return serial == entries.end() ? nullptr : serial->second;
  }

  /// `cell` has the verdict over all families, which applies if one of the two compared families is the fastest of all.
  [[nodiscard]] std::optional<MapSaving> saving_of(const MapCell& cell, const FamilyEntries& entries,
                                                   const MapEntry& baseline) const {
    const MapEntry* overlap = nullptr;
    for (const auto& [strategy, entry] : entries) {
      const bool overlaps = entry != &baseline && strategy != "serial";
      overlap = overlaps && (overlap == nullptr || entry->time < overlap->time) ? entry : overlap;
    }
    if (overlap == nullptr) {
      return std::nullopt;
    }
    const auto ties = [&](const MapEntry& entry) {
      return std::find(cell.tied.begin(), cell.tied.end(), entry.strategy) != cell.tied.end();
    };
    const bool is_close = cell.winner == overlap->strategy   ? ties(baseline)
                          : cell.winner == baseline.strategy ? ties(*overlap)
                          : overlap->time < baseline.time    ? !beats(*overlap, baseline)
                                                             : !beats(baseline, *overlap);
    return MapSaving{.overlap = overlap->strategy,
                     .baseline = baseline.strategy,
                     .saved = 1.0 - to_seconds(overlap->time) / to_seconds(baseline.time),
                     .is_close = is_close};
  }

  void add_crossing(MapAxis axis, const MapCell& cell) {
    MapPlace next = cell.place;
    ++next[index_of(axis)];
    const MapCell* above = map_.at(next);
    if (above == nullptr || above->winner == cell.winner) {
      return;
    }
    Crossing crossing{.axis = axis, .place = cell.place, .below = cell.winner, .above = above->winner};
    locate(crossing, families_by_place_.at(reversed(cell.place)), families_by_place_.at(reversed(next)));
    map_.crossings.push_back(std::move(crossing));
  }

  void locate(Crossing& crossing, const FamilyEntries& below, const FamilyEntries& above) const {
    const auto lower = below.find(crossing.above);  // entry of the upper winner at the lower neighbour
    const auto upper = above.find(crossing.below);
    if (lower == below.end() || upper == above.end()) {
      return;
    }
    const auto log_of = [](const FamilyEntries& entries, const std::string& strategy) {
      return math::log(to_seconds(entries.at(strategy)->time));
    };
    const double lead_below = log_of(below, crossing.above) - log_of(below, crossing.below);
    const double lead_above = log_of(above, crossing.below) - log_of(above, crossing.above);
    crossing.clear =
        beats(*below.at(crossing.below), *lower->second) && beats(*above.at(crossing.above), *upper->second);
    if (crossing.axis == MapAxis::ranks || lead_below + lead_above <= 0.0) {
      return;
    }
    const double share = lead_below / (lead_below + lead_above);
    const auto between = [&](const std::string& strategy) {
      return (1.0 - share) * log_of(below, strategy) + share * log_of(above, strategy);
    };
    const double time = between(crossing.below);
    const bool third_is_faster = std::any_of(below.begin(), below.end(), [&](const auto& family) {
      const std::string& strategy = family.first;
      return strategy != crossing.below && strategy != crossing.above && above.contains(strategy) &&
             between(strategy) < time;
    });
    if (!third_is_faster) {
      const std::vector<MapValue>& values = map_.values(crossing.axis);
      const std::size_t index = crossing.place[index_of(crossing.axis)];
      crossing.at =
          math::exp((1.0 - share) * math::log(values[index].value) + share * math::log(values[index + 1].value));
    }
  }

  [[nodiscard]] bool beats(const MapEntry& faster, const MapEntry& slower) const {
    return verdict_of(std::array{contender_of(faster), contender_of(slower)}, rule_).wins();
  }

  VerdictRule rule_;
  CrossoverMap map_;
  std::vector<const MapEntry*> entries_;
  std::map<MapPlace, FamilyEntries> families_by_place_;  // by reversed place
};

}  // namespace

std::string_view name_of(MapAxis axis) {
  switch (axis) {
    case MapAxis::seq: return "seq";
    case MapAxis::link: return "link_bandwidth";
    case MapAxis::network: return "network_bandwidth";
    case MapAxis::ranks: return "ranks";
  }
  return "";
}

const MapCell* CrossoverMap::at(const MapPlace& place) const {
  const auto before = [](const MapCell& cell, const MapPlace& wanted) {
    return std::lexicographical_compare(cell.place.rbegin(), cell.place.rend(), wanted.rbegin(), wanted.rend());
  };
  const auto cell = std::lower_bound(cells.begin(), cells.end(), place, before);
  return cell == cells.end() || cell->place != place ? nullptr : &*cell;
}

bool MapTest::add(const MapEntry& entry) {
  if (!has_result(entry)) {
    return is_map();
  }
  if (!first_) {
    first_ = entry;
  }
  families_ = families_ || entry.strategy != first_->strategy;
  for (std::size_t axis = 0; axis < entry.at.size(); ++axis) {
    axis_ = axis_ || entry.at[axis].value != first_->at[axis].value;
  }
  return is_map();
}

std::vector<CrossoverMap> crossover_maps(std::span<const MapEntry> entries, const VerdictRule& rule) {
  std::vector<std::string> settings;
  std::map<std::string, Builder> builders;
  for (const MapEntry& entry : entries) {
    const auto [builder, is_new] = builders.try_emplace(entry.setting, entry.setting, rule);
    if (is_new) {
      settings.push_back(entry.setting);
    }
    builder->second.add(entry);
  }
  std::vector<CrossoverMap> maps;
  for (const std::string& setting : settings) {
    if (Builder& builder = builders.at(setting); builder.is_map()) {
      maps.push_back(builder.build());
    }
  }
  return maps;
}

}  // namespace commfuse
