// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/rivals.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

namespace commfuse {

namespace {

using Ops = std::vector<OpId>;

bool sends(const Program& program, OpId op) {
  const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[program.ops[position(op)].shape]);
  return exchange != nullptr && exchange->sends;
}

/// Of the lanes that have any, in order.
std::vector<Ops> sends_by_lane(const Program& program, const Order& order) {
  std::vector<Ops> lanes;
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    Ops ops;
    std::ranges::copy_if(order.on_lane(lane), std::back_inserter(ops), [&](OpId op) { return sends(program, op); });
    if (!ops.empty()) {
      lanes.push_back(std::move(ops));
    }
  }
  return lanes;
}

/// Of a lane's ops those that may run beside `op`: along a lane come first the ops that end before it, then those that
/// run beside it, then those that start after it.
std::span<const OpId> beside(const Order& order, OpId op, const Ops& ops) {
  const auto first = std::partition_point(ops.begin(), ops.end(), [&](OpId other) { return order.before(other, op); });
  const auto last = std::partition_point(first, ops.end(), [&](OpId other) { return !order.before(op, other); });
  return {first, last};
}

/// The send of another lane that goes beside `op`, one of the sends of `own`; nothing where none does. Both lanes are
/// counted from where they began to run beside each other.
std::optional<OpId> abreast(const Order& order, OpId op, const Ops& own, const Ops& other) {
  const std::span<const OpId> met = beside(order, op, other);
  if (met.empty()) {
    return std::nullopt;
  }
  const auto place_of_first = [&](OpId beside_it, const Ops& ops) {
    return static_cast<std::size_t>(beside(order, beside_it, ops).data() - ops.data());
  };
  const auto first = static_cast<std::size_t>(met.data() - other.data());
  std::size_t begin = first;
  std::size_t own_begin = place_of_first(other[begin], own);
  for (std::size_t before = place_of_first(own[own_begin], other); before != begin;) {
    begin = before;
    own_begin = place_of_first(other[begin], own);
    before = place_of_first(own[own_begin], other);
  }
  const auto place = static_cast<std::size_t>(std::ranges::lower_bound(own, op) - own.begin());
  const std::size_t wanted = std::max(first, begin + place - own_begin);
  return wanted < first + met.size() ? std::optional(other[wanted]) : std::nullopt;
}

}  // namespace

void add_rivals(const Program& program, const Order& order, std::vector<Meetings>& meetings) {
  const std::vector<Ops> lanes = sends_by_lane(program, order);
  if (lanes.size() < 2) {
    return;
  }
  for (const Ops& own : lanes) {
    for (const OpId op : own) {
      for (const Ops& other : lanes) {
        if (&other != &own) {
          if (const std::optional<OpId> rival = abreast(order, op, own, other)) {
            meetings[position(op)].rivals.push_back(*rival);
          }
        }
      }
    }
  }
}

}  // namespace commfuse
