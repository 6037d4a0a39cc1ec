// SPDX-License-Identifier: Apache-2.0
// What a rank's waits and in-order lanes promise: which op has surely ended before which other starts.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/program.h"

namespace commfuse {

/// The local order of one rank: transitive over waits and lanes. Memory: ops x lanes.
class Order {
 public:
  /// Ops whose predicate does not hold on `rank` are as if they were not there.
  Order(const Program& program, Rank rank);

  /// True when `first` has ended before `second` starts, whatever the durations. Requires both to take part.
  [[nodiscard]] bool before(OpId first, OpId second) const {
    return finished(second, lane_[commfuse::position(first)]) > place_[commfuse::position(first)];
  }
  [[nodiscard]] bool takes_part(OpId op) const { return place(op) >= 0; }
  /// Where an op stands on its lane; -1 when it does not take part.
  [[nodiscard]] std::int32_t place(OpId op) const { return place_[commfuse::position(op)]; }
  [[nodiscard]] std::size_t lane(OpId op) const { return lane_[commfuse::position(op)]; }
  /// The ops of a lane, in order.
  [[nodiscard]] const std::vector<OpId>& on_lane(std::size_t lane) const { return on_lane_[lane]; }
  /// How many ops of `lane`, from its first, have ended before `op` starts.
  [[nodiscard]] std::int32_t finished(OpId op, std::size_t lane) const { return finished(op)[lane]; }
  /// The same of every lane.
  [[nodiscard]] const std::int32_t* finished(OpId op) const {
    return finished_.data() + commfuse::position(op) * lanes_;
  }

 private:
  std::size_t lanes_;
  std::vector<std::uint16_t> lane_;     // by op
  std::vector<std::int32_t> place_;     // by op: its place on its lane, -1 when it does not take part
  std::vector<std::int32_t> finished_;  // by op and lane
  std::vector<std::vector<OpId>> on_lane_;
};

/// Neither copy engines nor a kernel that runs anyway take SMs for what exchanges on their lanes move.
bool exchange_holds_sms(LaneKind lane);

/// What may run at the same time as an op, because neither is ordered before the other. Of a compute op which kinds of
/// communication hold SMs meanwhile (exchanges on lanes of kind copy or kernel do
/// not); of an exchange that sends, of every other lane the send that goes beside it (`rivals`), and the collectives
/// beside it; of a collective, the sends and collectives of other lanes beside it (`contenders`).
struct Meetings {
  bool exchange = false;
  bool collective = false;
  std::vector<OpId> rivals;
  std::vector<OpId> contenders;
};

/// By op.
std::vector<Meetings> meetings_of(const Program& program, const Order& order);

}  // namespace commfuse
