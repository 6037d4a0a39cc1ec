// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/rivals.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace commfuse {

namespace {

using Ops = std::vector<OpId>;
/// An axis and a shift: the same rank, seen from any one.
using Peer = std::pair<std::int8_t, std::int32_t>;

const ExchangeShape* sending(const Program& program, OpId op) {
  const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[program.ops[position(op)].shape]);
  return exchange != nullptr && exchange->sends ? exchange : nullptr;
}

Peer peer_of(const ExchangeShape& exchange) {
  return exchange.shift == 0 ? Peer{-1, 0} : Peer{exchange.axis, exchange.shift};
}

/// The sends of one lane, in order, also by peer.
struct Sends {
  std::uint16_t lane = 0;
  Ops ops;
  std::map<Peer, Ops> to;
};

std::vector<Sends> sends_by_lane(const Program& program, const Order& order) {
  std::vector<Sends> all;
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    Sends sends{.lane = static_cast<std::uint16_t>(lane), .ops = {}, .to = {}};
    for (const OpId op : order.on_lane(lane)) {
      if (const ExchangeShape* exchange = sending(program, op)) {
        sends.ops.push_back(op);
        sends.to[peer_of(*exchange)].push_back(op);
      }
    }
    if (!sends.ops.empty()) {
      all.push_back(std::move(sends));
    }
  }
  return all;
}

/// Of a lane's ops those that may run beside `op`: along a lane come first the ops that end before it, then those that
/// run beside it, then those that start after it.
std::span<const OpId> beside(const Order& order, OpId op, const Ops& ops) {
  const auto first = std::partition_point(ops.begin(), ops.end(), [&](OpId other) { return order.before(other, op); });
  const auto last = std::partition_point(first, ops.end(), [&](OpId other) { return !order.before(op, other); });
  return {first, last};
}

}  // namespace

void add_rivals(const Program& program, const Order& order, std::vector<Meetings>& meetings) {
  const std::vector<Sends> lanes = sends_by_lane(program, order);
  if (lanes.size() < 2) {
    return;
  }
  for (const Sends& own : lanes) {
    for (const OpId op : own.ops) {
      const Peer peer = peer_of(*sending(program, op));
      for (const Sends& other : lanes) {
        const std::span<const OpId> met =
            other.lane == own.lane ? std::span<const OpId>{} : beside(order, op, other.ops);
        if (!met.empty()) {
          const auto same = other.to.find(peer);
          const bool same_peer = same != other.to.end() && !beside(order, op, same->second).empty();
          meetings[position(op)].rivals.push_back({other.lane, met.front(), met.back(), same_peer});
        }
      }
    }
  }
}

}  // namespace commfuse
