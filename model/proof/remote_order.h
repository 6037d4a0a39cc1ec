// SPDX-License-Identifier: Apache-2.0
// Order across ranks: determines whether an op on one rank has certainly completed before an op on another rank is
// posted, whatever the durations. The order follows from the waits and lanes of each rank (order.h) and from the
// messages between ranks.
//
// Vector clocks (Fidge 1988, Mattern 1988): the clock of an op counts, for each lane of each rank, the ops that have
// ended before it is posted. At its end, the clock of an op also includes the following clocks:
//   rendezvous   the clock of each partner when the partner was posted
//   push, pull   as receiver, the clock of the sender when it was posted; as sender, none
//   collective   the clocks of its whole group when posted
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "model/program/matching.h"
#include "model/program/program.h"
#include "model/proof/deadlock.h"

namespace commfuse {

/// An op on a rank, in the first or the second of two iterations.
struct Occurrence {
  Rank rank = 0;
  OpId op{};
  std::int32_t iteration = 0;
};

class RemoteOrder {
 public:
  /// Requires `posts` to be those of a complete run. With Ranks::first, they are the posts of rank 0, which represents
  /// all ranks.
  RemoteOrder(const Program& program, const Matching& matching, std::span<const Post> posts, Ranks which);

  /// Returns false if the clocks would need more than 256 MiB.
  static bool fits(const Program& program, Ranks which);

  /// Returns true if `first` has ended before `second` is posted. Requires that both ranks take part in their ops.
  [[nodiscard]] bool before(const Occurrence& first, const Occurrence& second) const;

 private:
  /// Clock of one occurrence: how many ops have ended, by lane and by displacement of a rank from the occurrence's
  /// rank.
  using Clock = std::int32_t*;

  void post(const Occurrence& occurrence);
  void learn_end(const Occurrence& ended, Clock clock);
  void learn_from_partners(const Occurrence& ended, Clock clock);
  void learn(Clock clock, const std::int32_t* other, int axis, std::int32_t shift);

  /// Returns the rank that holds the clock: 0 if rank 0 represents all ranks, because then all events happen on rank 0.
  [[nodiscard]] Rank stored(Rank rank) const { return together_ ? 0 : rank; }
  [[nodiscard]] std::size_t node(Rank rank, OpId op) const {
    return static_cast<std::size_t>(stored(rank)) * program_.ops.size() + position(op);
  }
  [[nodiscard]] Clock clock_of(const Occurrence& occurrence) { return clocks_.data() + place_of(occurrence); }
  [[nodiscard]] std::size_t place_of(const Occurrence& occurrence) const {
    return (static_cast<std::size_t>(occurrence.iteration) * ended_.size() + node(occurrence.rank, occurrence.op)) *
           width_;
  }
  /// Returns how many ops of an occurrence's lane have ended once the occurrence has ended.
  [[nodiscard]] std::int32_t count_of(const Occurrence& occurrence) const;
  [[nodiscard]] Rank displacement(Rank from, Rank to) const;

  const Program& program_;
  const Matching& matching_;
  bool together_;
  std::size_t lanes_;
  std::size_t width_;  // number of counts in a clock
  std::vector<std::int32_t>
      ended_;  // by rank and op: number of ops of its lane that have ended in an iteration once the op has ended
  std::vector<std::int32_t> length_;  // by rank and lane: ops per iteration
  std::vector<OpId> last_;            // by rank and lane: the last posted op; OpId{-1} before the first
  std::vector<std::int32_t> clocks_;  // by iteration, rank and op
  // For each axis and shift: the rank `shift` ahead of every rank.
  std::map<std::pair<int, std::int32_t>, std::vector<Rank>> shifted_;
};

}  // namespace commfuse
