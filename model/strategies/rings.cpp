// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/rings.h"

#include <algorithm>

namespace commfuse {

std::vector<Track> tracks_of(const Stage& stage, Directions directions) {
  const std::int32_t peers = stage.ranks - 1;
  const std::int32_t parts = directions == Directions::halves ? stage.cuts / 2 : stage.cuts;
  std::vector<Track> tracks;
  std::int32_t chain = 0;
  for (std::int32_t part = 0; part < parts; ++part) {
    const Way ahead{.shift = 1, .block = part, .chain = chain++};
    tracks.push_back({.ways = {ahead}, .reach = directions == Directions::shards ? stage.ranks / 2 : peers});
    if (directions == Directions::halves) {
      tracks.back().ways.push_back({.shift = -1, .block = parts + part, .chain = chain++});
    } else if (directions == Directions::shards && peers > 1) {
      tracks.push_back({.ways = {{.shift = -1, .block = part, .chain = chain++}}, .reach = peers / 2});
    }
  }
  return tracks;
}

std::int32_t chains_of(const std::vector<Track>& tracks) { return tracks.back().ways.back().chain + 1; }

Waits landed(std::span<const Flight> flights) {
  if (flights.size() == 1) {
    return Waits(flights.front().op);
  }
  Few<Flight> last;
  for (const Flight& flight : flights) {
    const auto same_lane =
        std::find_if(last.begin(), last.end(), [&](const Flight& other) { return other.lane == flight.lane; });
    if (same_lane == last.end()) {
      last.push_back(flight);
    } else {
      same_lane->op = std::max(same_lane->op, flight.op);
    }
  }
  Waits ops;
  for (const Flight& flight : last) {
    ops.push_back(flight.op);
  }
  return ops;
}

Waits CommLanes::waits_if_first(std::uint16_t lane, const Stage& stage) {
  const bool first = !used_[lane];
  used_[lane] = true;
  return first ? Waits(stage.ready) : Waits{};
}

Done multiply_alone(const Stage& stage) {
  return {stage.multiply({.a = {stage.rows_of(stage.input, stage.shard(0), stage.cuts)},
                          .b = {stage.builder.whole(stage.weight)},
                          .out = {stage.builder.whole(stage.output)},
                          .waits = stage.ready})};
}

void stack(Operand& operand, const Region& region) {
  if (!operand.empty()) {
    Region& last = operand.back();
    if (last.buffer == region.buffer && last.column == region.column && last.columns == region.columns &&
        last.row + last.rows == region.row) {
      last.rows += region.rows;
      return;
    }
  }
  operand.push_back(region);
}

void stack(Operand& operand, const Operand& regions) {
  for (const Region& region : regions) {
    stack(operand, region);
  }
}

}  // namespace commfuse
