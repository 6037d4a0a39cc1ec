// SPDX-License-Identifier: Apache-2.0
// FuseRS, ring-accumulate form (CommFuse Alg 2, Fig 7): running sums travel round the ring, and each rank adds its
// partial product to the sum that has just arrived; a rank's own shard comes last. p[j] is the rank's
// partial product for shard j, m[j] the running sum that it sends on:
//
//            step 0     step 1       step 2       step 3          (4 ranks, seen from rank r)
//   compute  p[r-1]     p[r-2] +     p[r-3] +     p[r] +          + adds what came in during the step
//   comm     idle       m[r-1] ->    m[r-2] ->    m[r-3] ->
//
// There are N GEMMs, N-1 transfers and N-1 adds. With their times c, p and a, the makespan is
// c + (N-1) (max(c, p) + a) with the adds on the compute lane. With the adds on their own lane it is E(N-1), where
// E(0) = c and E(i) = max((i+1) c, E(i-1) + p) + a.
//
// Parts of shards and rings in both directions are as in FuseAG (fuse_ag_ring.cpp), run backwards. With m parts there
// are m times as many transfers, adds and GEMMs, except for the rank's own shard's GEMM. With halves there are two
// transfers per step, and the makespan is c + (N-1) (max(c, p/2) + a). With shards there is one add fewer, and the last
// add has three terms. With groups, each GEMM multiplies g shards, then one GEMM the remaining shards, and one the
// rank's own shard; sums still travel and are added one by one.
#include <algorithm>
#include <functional>

#include "model/strategies/rings.h"
#include "model/strategies/strategies.h"

namespace commfuse {

namespace {

/// A partial product for the rank that is `distance` transfers ahead on a track. Tracks end at distance 0, the rank's
/// own shard: if whole shards move in both directions, two tracks end in the same rows.
struct Partial {
  std::int32_t distance = 0;
  std::vector<Track> tracks;
  [[nodiscard]] const Track& track() const { return tracks.front(); }
  [[nodiscard]] bool is_own() const { return distance == 0; }
  [[nodiscard]] bool first() const { return distance == track().reach; }  // no sum arrives for it
};

/// Returns the partial products in the reverse of FuseAG's order.
std::vector<Partial> partials_of(const std::vector<Track>& tracks) {
  std::vector<Partial> partials;
  const std::vector<Track> backwards(tracks.rbegin(), tracks.rend());
  for (std::int32_t distance = tracks.front().reach; distance >= 0; --distance) {
    for (const Track& track : backwards) {
      const bool same_rows = !partials.empty() && partials.back().is_own() &&
                             partials.back().track().ways.front().block == track.ways.front().block;
      if (same_rows) {
        partials.back().tracks.push_back(track);
      } else if (distance <= track.reach) {
        partials.push_back({distance, {track}});
      }
    }
  }
  return partials;
}

class RingSum {
 public:
  RingSum(const Stage& stage, const StrategyOptions& options)
      : stage_(stage),
        options_(options),
        tracks_(tracks_of(stage, options.directions)),
        partials_(partials_of(tracks_)),
        first_own_(static_cast<std::size_t>(
            std::find_if(partials_.begin(), partials_.end(), std::mem_fn(&Partial::is_own)) - partials_.begin())),
        slots_(2 * std::max(static_cast<std::size_t>(options.group), tracks_.size())),
        // Two slots per chain are enough: a step sends from one and receives into the other.
        sum_(stage.scratch("sum", 2 * chains_of(tracks_), stage.output)),
        partial_(stage.scratch("partial", static_cast<std::int32_t>(slots_) * blocks(), stage.output)),
        lanes_(options.lanes),
        summed_(static_cast<std::size_t>(chains_of(tracks_))),
        added_(partials_.size(), no_op) {}

  Done run() {
    std::size_t multiplied = 0;
    for (std::size_t i = 0; i < partials_.size(); ++i) {
      const std::vector<Flight> brought = receive(partials_[i]);
      if (i == multiplied) {
        multiplied = multiply(i);
      }
      const OpId summed = partials_[i].first() ? product_ : add(i, brought);
      for_each_way(partials_[i], [&](const Track&, const Way& way) { summed_[at(way)] = summed; });
    }
    return {added_.back()};
  }

 private:
  static constexpr OpId no_op{-1};
  static std::size_t at(const Way& way) { return static_cast<std::size_t>(way.chain); }
  template <class Visit>
  static void for_each_way(const Partial& partial, const Visit& visit) {
    for (const Track& track : partial.tracks) {
      for (const Way& way : track.ways) {
        visit(track, way);
      }
    }
  }

  /// Returns the number of blocks of a partial product.
  [[nodiscard]] std::int32_t blocks() const { return static_cast<std::int32_t>(tracks_.front().ways.size()); }
  [[nodiscard]] Region slot(std::size_t i) const {
    return stage_.rows_of(partial_, static_cast<std::int32_t>(i % slots_) * blocks(), blocks());
  }
  [[nodiscard]] Region sum(const Track& track, const Way& way, std::int32_t distance) const {
    return stage_.rows_of(sum_, (track.reach - distance) % 2 * chains_of(tracks_) + way.chain);
  }
  [[nodiscard]] Operand sums(const Track& track, std::int32_t distance) const {
    Operand rows;
    for (const Way& way : track.ways) {
      stack(rows, sum(track, way, distance));
    }
    return rows;
  }
  /// Returns the rows in which the ways end: the rows of their shards in the input, or the rows of their blocks in a
  /// buffer of one shard.
  [[nodiscard]] Operand rows(BufferId buffer, const Partial& partial) const {
    Operand rows;
    for (const Way& way : partial.track().ways) {
      const Index shard = buffer == stage_.input ? stage_.shard(way.shift * partial.distance) : Index{0};
      stack(rows, stage_.rows_of(buffer, shard + way.block));
    }
    return rows;
  }

  /// Receives the running sums to which a partial product is added.
  std::vector<Flight> receive(const Partial& partial) {
    std::vector<Flight> flights;
    if (partial.first()) {
      return flights;
    }
    for_each_way(partial, [&](const Track& track, const Way& way) {
      const std::uint16_t lane = lanes_.of(way.chain);
      const OpId exchange = stage_.builder.exchange({.lane = {LaneKind::comm, lane},
                                                     .axis = stage_.axis,
                                                     .shift = way.shift,
                                                     .send = {sum(track, way, partial.distance + 1)},
                                                     .receive = {sum(track, way, partial.distance)},
                                                     .wire = stage_.builder.buffer_of(stage_.output).dtype,
                                                     .waits = {summed_[at(way)]}});
      flights.push_back({exchange, lane});
    });
    return flights;
  }

  /// Multiplies the group of partial products that begins at `first`, or all partial products of the rank's own shard.
  /// Returns the index of the next partial product.
  std::size_t multiply(std::size_t first) {
    const std::size_t end =
        first == first_own_ ? partials_.size() : std::min(first_own_, first + static_cast<std::size_t>(options_.group));
    Operand input;
    Operand results;
    std::vector<OpId> waits = first == 0 ? stage_.ready : std::vector<OpId>{};
    for (std::size_t i = first; i < end; ++i) {
      stack(input, rows(stage_.input, partials_[i]));
      stack(results, partials_[i].first() ? sums(partials_[i].track(), partials_[i].distance) : Operand{slot(i)});
      // An earlier add, if it has its own lane, may still be reading this slot.
      if (options_.add_lane == LaneKind::aux && i >= slots_ && added_[i - slots_] != no_op) {
        waits = {added_[i - slots_]};
      }
    }
    product_ =
        stage_.multiply({.a = input, .b = {stage_.builder.whole(stage_.weight)}, .out = results, .waits = waits});
    return end;
  }

  OpId add(std::size_t i, const std::vector<Flight>& brought) {
    const Partial& partial = partials_[i];
    std::vector<Operand> inputs;
    for (const Track& track : partial.tracks) {
      inputs.push_back(sums(track, partial.distance));
    }
    inputs.push_back({slot(i)});
    Waits waits = landed(brought);
    if (options_.add_lane == LaneKind::aux) {
      waits.push_back(product_);
    }
    added_[i] = stage_.builder.elementwise(
        {.lane = {options_.add_lane, 0},
         .function = Function::add,
         .inputs = inputs,
         .out = partial.is_own() ? rows(stage_.output, partial) : sums(partial.track(), partial.distance),
         .waits = waits});
    return added_[i];
  }

  const Stage& stage_;
  const StrategyOptions& options_;
  std::vector<Track> tracks_;
  std::vector<Partial> partials_;
  std::size_t first_own_;  // index of the rank's own shard's first partial product
  std::size_t slots_;      // number of slots for partial products
  BufferId sum_;
  BufferId partial_;
  CommLanes lanes_;
  std::vector<OpId> summed_;  // by chain: the op that made the sum that is sent next
  std::vector<OpId> added_;   // by partial product
  OpId product_{};
};

}  // namespace

Done fuse_rs_ring(const Stage& stage, const StrategyOptions& options) {
  return stage.ranks == 1 ? multiply_alone(stage) : RingSum(stage, options).run();
}

}  // namespace commfuse
