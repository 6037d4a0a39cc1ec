// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/order.h"

#include <algorithm>

namespace commfuse {

Order::Order(const Program& program, Rank rank)
    : lane_(program.ops.size()),
      place_(program.ops.size(), -1),
      finished_(program.ops.size() * program.lanes.size(), 0),
      on_lane_(program.lanes.size()) {
  const Coordinates here = program.mesh.coordinates(rank);
  const std::size_t lanes = program.lanes.size();
  const auto learn = [&](std::size_t op, OpId earlier) {
    const std::size_t from = commfuse::position(earlier);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      finished_[op * lanes + lane] = std::max(finished_[op * lanes + lane], finished_[from * lanes + lane]);
    }
    std::int32_t& own = finished_[op * lanes + lane_[from]];
    own = std::max(own, place_[from] + 1);
  };
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Op& record = program.ops[op];
    if (!record.where.holds(here)) {
      continue;
    }
    lane_[op] = record.lane;
    std::vector<OpId>& queue = on_lane_[record.lane];
    if (!queue.empty()) {
      learn(op, queue.back());
    }
    for (const OpId wait : program.waits_of(record)) {
      if (takes_part(wait)) {
        learn(op, wait);
      }
    }
    place_[op] = static_cast<std::int32_t>(queue.size());
    queue.push_back(OpId{static_cast<std::int32_t>(op)});
  }
}

namespace {

/// Neither copy engines nor a kernel that runs anyway take SMs for what they move.
bool takes_sms(LaneKind lane) { return lane != LaneKind::copy && lane != LaneKind::kernel; }

/// Adds what of one lane may run beside `op`. Along a lane come first the ops that end before it, then those that run
/// beside it, then those that start after it.
void meet_lane(const Program& program, const Order& order, OpId op, std::size_t lane, Meetings& met) {
  const std::vector<OpId>& queue = order.on_lane(lane);
  for (auto beside = queue.begin() + order.finished(op, lane); beside != queue.end(); ++beside) {
    if (order.before(op, *beside) || (met.exchange && met.collective)) {
      return;
    }
    const Op& record = program.ops[position(*beside)];
    met.exchange = met.exchange || (record.kind == OpKind::exchange && takes_sms(program.lanes[record.lane].kind));
    met.collective = met.collective || record.kind == OpKind::collective;
  }
}

}  // namespace

std::vector<Meetings> meetings_of(const Program& program, const Order& order) {
  std::vector<Meetings> meetings(program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const OpId id{static_cast<std::int32_t>(op)};
    if (program.ops[op].purpose == Purpose::communication || !order.takes_part(id)) {
      continue;
    }
    for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
      if (lane != program.ops[op].lane) {
        meet_lane(program, order, id, lane, meetings[op]);
      }
    }
  }
  return meetings;
}

}  // namespace commfuse
