// SPDX-License-Identifier: Apache-2.0
#include "model/program/rivals.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace commfuse {

namespace {

using Ops = std::vector<OpId>;

/// Returns whether the op sends data through a port. A credit carries none, and a transfer inside a kernel has its
/// price from the kernel's rate.
bool sends(const Program& program, OpId op) {
  const Op& sending = program.ops[position(op)];
  const ExchangeShape* exchange = exchange_of(program, sending);
  return exchange != nullptr && exchange->sends && !is_credit(*exchange) &&
         program.lanes[sending.lane].kind != LaneKind::kernel;
}

bool is_collective(const Program& program, OpId op) { return program.ops[position(op)].kind == OpKind::collective; }

/// Returns the ops for which `chosen` is true, in order, for each lane with such ops.
template <class Chosen>
std::vector<Ops> by_lane(const Program& program, const Order& order, const Chosen& chosen) {
  std::vector<Ops> lanes;
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    Ops ops;
    std::ranges::copy_if(order.on_lane(lane), std::back_inserter(ops), chosen);
    if (!ops.empty()) {
      lanes.push_back(std::move(ops));
    }
  }
  return lanes;
}

/// Returns the ops of a lane that may run concurrently with `op`. A lane contains first the ops that end before `op`,
/// then the concurrent ops, then the ops that start after it.
std::span<const OpId> concurrent_ops(const Order& order, OpId op, const Ops& ops) {
  const auto first = std::partition_point(ops.begin(), ops.end(), [&](OpId other) { return order.before(other, op); });
  const auto last = std::partition_point(first, ops.end(), [&](OpId other) { return !order.before(op, other); });
  return std::span(ops).subspan(static_cast<std::size_t>(first - ops.begin()), static_cast<std::size_t>(last - first));
}

/// Sends of two lanes, and the positions at which they begin to run concurrently.
class LanePairing {
 public:
  LanePairing(const Order& order, const Ops& lane, const Ops& other)
      : order_(order), own_lane_(lane), other_(other), begins_(other.size(), unknown) {}

  /// Returns the send of the other lane that is paired with `op`, this lane's send at `place`; nullopt if there is
  /// none. Both lanes are counted from the position at which they begin to run concurrently.
  std::optional<OpId> paired_send(OpId op, std::size_t place) {
    const std::span<const OpId> concurrent = concurrent_ops(order_, op, other_);
    if (concurrent.empty()) {
      return std::nullopt;
    }
    const auto first = static_cast<std::size_t>(concurrent.data() - other_.data());
    const std::size_t begin = begin_of(first);
    const std::size_t wanted = std::max(first, begin + place - place_of_first(other_[begin], own_lane_));
    return wanted < first + concurrent.size() ? std::optional(other_[wanted]) : std::nullopt;
  }

 private:
  static constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] std::size_t place_of_first(OpId op, const Ops& ops) const {
    return static_cast<std::size_t>(concurrent_ops(order_, op, ops).data() - ops.data());
  }

  /// Returns the beginning of the run of sends that contains the other lane's send at `place`. Visits every place once.
  std::size_t begin_of(std::size_t place) {
    std::size_t begin = place;
    walked_.clear();
    while (begins_[begin] == unknown) {
      walked_.push_back(begin);
      const std::size_t before = place_of_first(own_lane_[place_of_first(other_[begin], own_lane_)], other_);
      if (before == begin) {
        begins_[begin] = begin;
      }
      begin = before;
    }
    begin = begins_[begin];
    for (const std::size_t walked : walked_) {
      begins_[walked] = begin;
    }
    return begin;
  }

  const Order& order_;
  const Ops& own_lane_;
  const Ops& other_;
  std::vector<std::size_t> begins_;  // by place on the other lane
  std::vector<std::size_t> walked_;
};

}  // namespace

void add_rivals(const Program& program, const Order& order, std::vector<Meetings>& meetings) {
  const std::vector<Ops> lanes = by_lane(program, order, [&](OpId op) { return sends(program, op); });
  if (lanes.size() < 2) {
    return;
  }
  for (const Ops& lane : lanes) {
    for (const Ops& other : lanes) {
      if (&other == &lane) {
        continue;
      }
      LanePairing pairing(order, lane, other);
      for (std::size_t place = 0; place < lane.size(); ++place) {
        if (const std::optional<OpId> rival = pairing.paired_send(lane[place], place)) {
          meetings[position(lane[place])].rivals.push_back(*rival);
        }
      }
    }
  }
}

void add_contenders(const Program& program, const Order& order, std::vector<Meetings>& meetings) {
  const auto is_transfer = [&](OpId op) { return is_collective(program, op) || sends(program, op); };
  if (std::ranges::none_of(program.ops, [](const Op& op) { return op.kind == OpKind::collective; })) {
    return;
  }
  const std::vector<Ops> lanes = by_lane(program, order, is_transfer);
  for (const Ops& lane : lanes) {
    for (const Ops& other : lanes) {
      for (std::size_t i = 0; &other != &lane && i < lane.size(); ++i) {
        std::ranges::copy_if(concurrent_ops(order, lane[i], other),
                             std::back_inserter(meetings[position(lane[i])].contenders),
                             [&](OpId op) { return is_collective(program, lane[i]) || is_collective(program, op); });
      }
    }
  }
}

}  // namespace commfuse
