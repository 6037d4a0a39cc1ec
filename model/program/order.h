// SPDX-License-Identifier: Apache-2.0
// Order that a rank's waits and in-order lanes guarantee: which ops have certainly completed before another op starts.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/program.h"

namespace commfuse {

/// Local order of one rank: transitive over waits and lanes. Memory: ops x lanes.
class Order {
 public:
  /// Ignores ops whose predicate is false on `rank`.
  Order(const Program& program, Rank rank);

  /// Returns true when `first` has ended before `second` starts, whatever the durations. Requires that both take part.
  [[nodiscard]] bool before(OpId first, OpId second) const {
    return finished(second, lane_[commfuse::position(first)]) > position_on_lane_[commfuse::position(first)];
  }
  [[nodiscard]] bool takes_part(OpId op) const { return position_on_lane(op) >= 0; }
  /// Returns the op's position on its lane; -1 when it does not take part.
  [[nodiscard]] std::int32_t position_on_lane(OpId op) const { return position_on_lane_[commfuse::position(op)]; }
  [[nodiscard]] std::size_t lane(OpId op) const { return lane_[commfuse::position(op)]; }
  /// Returns the ops of a lane, in order.
  [[nodiscard]] const std::vector<OpId>& on_lane(std::size_t lane) const { return on_lane_[lane]; }
  /// Returns how many ops at the front of `lane` have ended before `op` starts.
  [[nodiscard]] std::int32_t finished(OpId op, std::size_t lane) const { return finished(op)[lane]; }
  /// Returns these counts for every lane.
  [[nodiscard]] const std::int32_t* finished(OpId op) const {
    return finished_.data() + commfuse::position(op) * lanes_;
  }

 private:
  std::size_t lanes_;
  std::vector<std::uint16_t> lane_;             // by op
  std::vector<std::int32_t> position_on_lane_;  // by op; -1 when the op does not take part
  std::vector<std::int32_t> finished_;          // by op and lane
  std::vector<std::vector<OpId>> on_lane_;
};

/// Returns true unless the lane's data are moved without SMs of their own, by copy engines or by a kernel that runs
/// anyway.
bool communication_holds_sms(LaneKind lane);
/// Returns true for an exchange or a collective that holds SMs.
bool holds_sms(const Program& program, const Op& op);

/// Ops of one lane with ids from `first` to `last`.
struct LaneRange {
  std::size_t lane = 0;
  OpId first{};
  OpId last{};
};

/// Ops that may run at the same time as an op, because neither is ordered before the other. For a compute op: the kinds
/// of concurrent communication that hold SMs (lanes of kind copy or kernel hold none), and where it is (`sm_holders`,
/// at most one range of each lane, sorted by lane). For an exchange that sends: at most one concurrent send of each of
/// the other lanes (`rivals`), and the concurrent collectives (`contenders`). For a collective: the concurrent sends
/// and collectives of other lanes (`contenders`). `rivals` and `contenders` are sorted by lane, then by id.
struct Meetings {
  bool exchange = false;
  bool collective = false;
  std::vector<LaneRange> sm_holders;
  std::vector<OpId> rivals;
  std::vector<OpId> contenders;
};

/// Returns the meetings by op.
std::vector<Meetings> meetings_of(const Program& program, const Order& order);

}  // namespace commfuse
