// SPDX-License-Identifier: Apache-2.0
// Small things that the ring-wise generators share.
#pragma once

#include <span>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// One block of every shard on its way round the ring.
struct Way {
  std::int32_t shift = 1;  // 1: to the next rank; -1: to the one before
  std::int32_t block = 0;  // of every shard
  std::int32_t chain = 0;  // its number: transfers of one way follow each other
};

/// What comes in at the same step and is multiplied together.
struct Track {
  std::vector<Way> ways;
  std::int32_t reach = 0;  // transfers from the first rank to the last
};

/// How the m parts of every shard go round a ring of N.
///
///   one      m tracks of one way: every part to the next rank, N-1 times
///   halves   m tracks of two ways: parts of the first half of every shard to the next rank, those of the second to the
///            one before, N-1 times
///   shards   2 m tracks: whole shards go both ways, floor(N/2) come from behind, the others from ahead
std::vector<Track> tracks_of(const Stage& stage, Directions directions);
/// The ways of all tracks.
std::int32_t chains_of(const std::vector<Track>& tracks);

/// An exchange and the lane it is on.
struct Flight {
  OpId op{};
  std::uint16_t lane = 0;
};

/// The ops to wait for so that all of these have ended: the last of each lane.
Waits landed(std::span<const Flight> flights);

/// Communication lanes, taken in turn.
class CommLanes {
 public:
  explicit CommLanes(std::int32_t lanes) : used_(static_cast<std::size_t>(lanes), false) {}

  [[nodiscard]] std::uint16_t of(std::int32_t place) const {
    return static_cast<std::uint16_t>(static_cast<std::size_t>(place) % used_.size());
  }
  /// What holds up the site's input holds up the first op of each lane; the lane's order does the rest.
  Waits first_waits(std::uint16_t lane, const Stage& stage);

 private:
  std::vector<bool> used_;  // by lane
};

/// One product of all that a rank holds: there is nobody else.
Done multiply_alone(const Stage& stage);

/// Stacks a region under an operand; one that continues the last region becomes part of it.
void stack(Operand& operand, const Region& region);
void stack(Operand& operand, const Operand& regions);

}  // namespace commfuse
