// SPDX-License-Identifier: Apache-2.0
// Order across ranks: which op has surely ended on one rank before which other is posted on another, whatever the
// durations. Beside the waits and lanes of each rank (order.h) the messages count that one rank got from another.
//
// Vector clocks (Fidge 1988, Mattern 1988): of every op the clock says how many ops of each lane of each rank have
// ended before it is posted. An op has learned, when it ends, what it knew when it was posted, and
//   rendezvous   what each of its partners knew when it was posted
//   push, pull   as receiver, what the sender knew when it was posted; the sender learns nothing
//   collective   what all of its group knew
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
  /// Requires the posts of a run that came to its end. With Ranks::first those of rank 0, which stands for all.
  RemoteOrder(const Program& program, const Matching& matching, std::span<const Post> posts, Ranks which);

  /// False where the clocks would take more than a quarter of a gigabyte.
  static bool fits(const Program& program, Ranks which);

  /// True when `first` has ended before `second` is posted. Requires both to take part.
  [[nodiscard]] bool before(const Occurrence& first, const Occurrence& second) const;

 private:
  /// Of one occurrence: by displacement of another rank from its own, and lane, how many ops have ended.
  using Clock = std::int32_t*;

  void post(const Occurrence& here);
  void learn_end(const Occurrence& ended, Clock clock);
  void learn_from_partners(const Occurrence& ended, Clock clock);
  void learn(Clock clock, const std::int32_t* other, int axis, std::int32_t shift);

  /// Where rank 0 stands for all, everything happens on it.
  [[nodiscard]] Rank stored(Rank rank) const { return together_ ? 0 : rank; }
  [[nodiscard]] std::size_t node(Rank rank, OpId op) const {
    return static_cast<std::size_t>(stored(rank)) * program_.ops.size() + position(op);
  }
  [[nodiscard]] Clock clock_of(const Occurrence& of) { return clocks_.data() + place_of(of); }
  [[nodiscard]] std::size_t place_of(const Occurrence& of) const {
    return (static_cast<std::size_t>(of.iteration) * ended_.size() + node(of.rank, of.op)) * width_;
  }
  /// How many ops of its lane have ended with it.
  [[nodiscard]] std::int32_t count_of(const Occurrence& of) const;
  [[nodiscard]] Rank displacement(Rank from, Rank to) const;

  const Program& program_;
  const Matching& matching_;
  bool together_;
  std::size_t lanes_;
  std::size_t width_;                 // of a clock
  std::vector<std::int32_t> ended_;   // by rank and op: how many ops of its lane have ended with it in an iteration
  std::vector<std::int32_t> length_;  // by rank and lane: ops in an iteration
  std::vector<OpId> last_;            // by rank and lane: posted last
  std::vector<std::int32_t> clocks_;  // by iteration, rank and op
  std::map<std::pair<int, std::int32_t>, std::vector<Rank>> shifted_;  // by axis and shift: of every rank the other
};

}  // namespace commfuse
