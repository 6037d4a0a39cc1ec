// SPDX-License-Identifier: Apache-2.0
#include "model/program/order.h"

#include <algorithm>

#include "model/program/rivals.h"

namespace commfuse {

Order::Order(const Program& program, Rank rank)
    : lanes_(program.lanes.size()),
      lane_(program.ops.size()),
      position_on_lane_(program.ops.size(), -1),
      finished_(program.ops.size() * lanes_, 0),
      on_lane_(lanes_) {
  const Coordinates coordinates = program.mesh.coordinates(rank);
  const std::size_t lanes = lanes_;
  const auto learn = [&](std::int32_t* known, OpId earlier) {
    const std::size_t from = commfuse::position(earlier);
    if (known[lane_[from]] > position_on_lane_[from]) {
      return;  // the earlier op, and all ops that complete before it, are already included
    }
    const std::int32_t* earlier_counts = finished_.data() + from * lanes;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      known[lane] = std::max(known[lane], earlier_counts[lane]);
    }
    known[lane_[from]] = position_on_lane_[from] + 1;
  };
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Op& record = program.ops[op];
    if (record.where.relation != Relation::always && !record.where.holds(coordinates)) {
      continue;
    }
    lane_[op] = record.lane;
    std::vector<OpId>& queue = on_lane_[record.lane];
    std::int32_t* known = finished_.data() + op * lanes;
    if (!queue.empty()) {
      const std::int32_t* earlier_counts = finished_.data() + commfuse::position(queue.back()) * lanes;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        known[lane] = earlier_counts[lane];
      }
      known[record.lane] = static_cast<std::int32_t>(queue.size());
    }
    for (const OpId wait : program.waits_of(record)) {
      if (takes_part(wait)) {
        learn(known, wait);
      }
    }
    position_on_lane_[op] = static_cast<std::int32_t>(queue.size());
    queue.push_back(OpId{static_cast<std::int32_t>(op)});
  }
}

bool communication_holds_sms(LaneKind lane) { return lane != LaneKind::copy && lane != LaneKind::kernel; }

bool holds_sms(const Program& program, const Op& op) {
  return (op.kind == OpKind::exchange || op.kind == OpKind::collective) &&
         communication_holds_sms(program.lanes[op.lane].kind);
}

namespace {

/// The ops of one lane, and prefix counts of earlier exchanges and collectives that hold SMs.
struct Queue {
  const std::vector<OpId>& ops;
  std::vector<std::int32_t> exchanges{0};
  std::vector<std::int32_t> collectives{0};

  Queue(const Program& program, const std::vector<OpId>& on_lane) : ops(on_lane) {
    for (const OpId op : ops) {
      const Op& record = program.ops[position(op)];
      const bool holds = holds_sms(program, record);
      exchanges.push_back(exchanges.back() + (holds && record.kind == OpKind::exchange ? 1 : 0));
      collectives.push_back(collectives.back() + (holds && record.kind == OpKind::collective ? 1 : 0));
    }
  }
};

/// Adds the ops of one lane that may run concurrently with `op`. A lane contains first the ops that end before `op`,
/// then the concurrent ops, then the ops that start after it.
void meet_lane(const Order& order, OpId op, std::size_t lane, const Queue& queue, Meetings& meetings) {
  const auto first = static_cast<std::size_t>(order.finished(op, lane));
  const auto end =
      static_cast<std::size_t>(std::partition_point(queue.ops.begin() + order.finished(op, lane), queue.ops.end(),
                                                    [&](OpId other) { return !order.before(op, other); }) -
                               queue.ops.begin());
  const bool meets_exchange = queue.exchanges[first] < queue.exchanges[end];
  const bool meets_collective = queue.collectives[first] < queue.collectives[end];
  meetings.exchange = meetings.exchange || meets_exchange;
  meetings.collective = meetings.collective || meets_collective;
  if (meets_exchange || meets_collective) {
    meetings.sm_holders.push_back({lane, queue.ops[first], queue.ops[end - 1]});
  }
}

}  // namespace

std::vector<Meetings> meetings_of(const Program& program, const Order& order) {
  std::vector<Queue> queues;
  queues.reserve(program.lanes.size());
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    queues.emplace_back(program, order.on_lane(lane));
  }
  std::vector<Meetings> meetings(program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const OpId id{static_cast<std::int32_t>(op)};
    if (program.ops[op].purpose == Purpose::communication || !order.takes_part(id)) {
      continue;
    }
    for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
      if (lane != program.ops[op].lane) {
        meet_lane(order, id, lane, queues[lane], meetings[op]);
      }
    }
  }
  add_rivals(program, order, meetings);
  add_contenders(program, order, meetings);
  return meetings;
}

}  // namespace commfuse
