// SPDX-License-Identifier: Apache-2.0
// Helpers that generators share: routes around a ring, communication lanes, and stacked rows.
#pragma once

#include <span>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// Route that one block of every shard takes around the ring.
struct Way {
  std::int32_t shift = 1;  // 1: to the next rank; -1: to the previous one
  std::int32_t block = 0;  // block of every shard
  std::int32_t chain = 0;  // index of the way; transfers of one way run in sequence
};

/// Ways whose blocks arrive in the same step and are multiplied together.
struct Track {
  std::vector<Way> ways;
  std::int32_t reach = 0;  // number of transfers from the first rank to the last
};

/// Returns the tracks on which the m parts of every shard go round a ring of N ranks:
///
///   one      m tracks with one way each: every part moves to the next rank, N-1 times
///   halves   m tracks with two ways each: parts of the first half of every shard move to the next rank, parts of the
///            second half to the previous rank, N-1 times
///   shards   2 m tracks (m if N = 2): whole shards move in both directions; a rank receives floor(N/2) shards from
///            previous ranks, the rest from next ranks
std::vector<Track> tracks_of(const Stage& stage, Directions directions);
/// Returns the number of ways in all tracks.
std::int32_t chains_of(const std::vector<Track>& tracks);

/// An exchange and its lane.
struct Flight {
  OpId op{};
  std::uint16_t lane = 0;
};

/// Returns the ops after which all flights have ended: the last op of each lane.
Waits landed(std::span<const Flight> flights);

/// Communication lanes, used in rotation.
class CommLanes {
 public:
  explicit CommLanes(std::int32_t lanes) : used_(static_cast<std::size_t>(lanes), false) {}

  [[nodiscard]] std::uint16_t of(std::int32_t index) const {
    return static_cast<std::uint16_t>(static_cast<std::size_t>(index) % used_.size());
  }
  /// Returns the waits of the lane's next op. The lane's first op waits for the site's input; later ops follow it in
  /// order and need no waits.
  Waits waits_if_first(std::uint16_t lane, const Stage& stage);

 private:
  std::vector<bool> used_;  // by lane
};

/// Adds one GEMM of all rows: the whole site on a single rank.
Done multiply_alone(const Stage& stage);

/// Appends a region to the rows of an operand; a region that continues the last one is merged with it.
void stack(Operand& operand, const Region& region);
void stack(Operand& operand, const Operand& regions);

}  // namespace commfuse
