// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/critical_path.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

namespace {

PathKind kind_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::essential: return PathKind::essential;
    case Purpose::local: return PathKind::local;
    case Purpose::communication: return PathKind::communication;
  }
  return PathKind::essential;
}

}  // namespace

PathShares shares_of(const CriticalPath& path, std::int32_t ranks) {
  PathShares shares{.by_rank = std::vector<Duration>(static_cast<std::size_t>(ranks))};
  for (const PathStep& step : path) {
    shares.by_kind[static_cast<std::size_t>(step.kind)] += step.to - step.from;
    shares.by_rank[static_cast<std::size_t>(step.rank)] += step.to - step.from;
  }
  return shares;
}

PathFinder::PathFinder(const Lowered& lowered, const std::vector<Duration>& issue)
    : lowered_(lowered), last_on_lane_(lowered.program->lanes.size(), -1) {
  const std::vector<Op>& ops = program().ops;
  check(issue.size() == ops.size(), "costs belong to the program");
  for (std::size_t op = 0; op < ops.size(); ++op) {
    before_on_lane_.push_back(last_on_lane_[ops[op].lane]);
    last_on_lane_[ops[op].lane] = static_cast<std::int32_t>(op);
  }
  const Rank ranks = lowered.matching.uniform ? 1 : program().mesh.ranks();
  for (Rank rank = 0; rank < ranks; ++rank) {
    Instant time;
    issued_.emplace_back();
    for (std::size_t op = 0; op < ops.size(); ++op) {
      time += lowered.takes_part(rank, OpId{static_cast<std::int32_t>(op)}) ? issue[op] : Duration::zero();
      issued_.back().push_back(time);
    }
  }
}

CriticalPath PathFinder::find(const RunTimes& times) const {
  CriticalPath path;
  if (program().ops.empty()) {
    return path;
  }
  Place place = last_end(times);
  Instant to = place.op == OpId{-1} ? Instant{} : times.end(place.rank, place.op);
  while (to > Instant{}) {
    const Cause cause = cause_of(times, place);
    const Posted start = posted(times, cause.posted);
    const auto add = [&](Place of, PathKind kind, Instant from) {
      if (from < to) {
        path.push_back({of.rank, of.op, kind, from, to});
      }
      to = from;
    };
    add(cause.running, kind_of(program().ops[position(cause.running.op)].purpose), std::min(start.at, to));
    if (start.by == OpId{-1}) {
      add(cause.posted, PathKind::issue, Instant{});
    }
    place = {cause.posted.rank, start.by};
  }
  std::reverse(path.begin(), path.end());
  return path;
}

/// Returns the op itself, or the nearest earlier op on its lane in which the rank takes part; -1 when there is none.
OpId PathFinder::taking_part(Rank rank, std::int32_t op) const {
  while (op >= 0 && !lowered_.takes_part(rank, OpId{op})) {
    op = before_on_lane_[static_cast<std::size_t>(op)];
  }
  return OpId{op};
}

Instant PathFinder::issued(Place place) const {
  return issued_[issued_.size() == 1 ? 0 : static_cast<std::size_t>(place.rank)][position(place.op)];
}

PathFinder::Posted PathFinder::posted(const RunTimes& times, Place place) const {
  Posted result;
  const auto consider = [&](OpId op) {
    const Instant end = times.end(place.rank, op);
    if (end > result.at || result.by == OpId{-1}) {
      result = {end, op};
    }
  };
  for (const OpId wait : program().waits_of(program().ops[position(place.op)])) {
    if (lowered_.takes_part(place.rank, wait)) {
      consider(wait);
    }
  }
  const OpId previous = taking_part(place.rank, before_on_lane_[position(place.op)]);
  if (previous != OpId{-1}) {
    consider(previous);
  }
  const Instant from_host = issued(place);
  return from_host > result.at ? Posted{from_host} : result;
}

PathFinder::Place PathFinder::later_posted(const RunTimes& times, Place first, Place second) const {
  return posted(times, second).at > posted(times, first).at ? second : first;
}

PathFinder::Cause PathFinder::cause_of(const RunTimes& times, Place place) const {
  const Shape& shape = program().shapes[program().ops[position(place.op)].shape];
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return cause_of_exchange(times, place, *exchange);
  }
  if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
    return cause_of_collective(times, place, *collective);
  }
  return {.running = place, .posted = place};
}

/// Returns the cause of the half (send or receive) that ended later; the two halves of an exchange may have different
/// partners. A one-sided exchange ends no earlier than it is posted. A push waits only for its sender, and the sender
/// of a pull waits for no receiver.
PathFinder::Cause PathFinder::cause_of_exchange(const RunTimes& times, Place place,
                                                const ExchangeShape& exchange) const {
  Cause latest{.running = place, .posted = place};
  Instant latest_end = exchange.protocol == Protocol::rendezvous ? Instant{} : posted(times, place).at;
  const auto consider = [&](Place sender, Place first, Place other) {
    const Place late = later_posted(times, first, other);
    const Instant end = posted(times, late).at + times.price(sender.rank, sender.op);
    if (end > latest_end) {
      latest = {.running = sender, .posted = late};
      latest_end = end;
    }
  };
  const bool push = exchange.protocol == Protocol::push;
  if (exchange.sends && exchange.protocol != Protocol::pull) {
    const Place receiver{target_of(program(), exchange, place.rank),
                         OpId{lowered_.matching.receiver(place.rank, place.op)}};
    consider(place, place, push ? place : receiver);
  }
  if (exchange.receives) {
    const Place sender{source_of(program(), exchange, place.rank),
                       OpId{lowered_.matching.sender(place.rank, place.op)}};
    consider(sender, push ? sender : place, sender);
  }
  return latest;
}

PathFinder::Cause PathFinder::cause_of_collective(const RunTimes& times, Place place,
                                                  const CollectiveShape& collective) const {
  const auto member = [&](std::int32_t coordinate) -> Place {
    return {program().mesh.member(place.rank, collective.axis, coordinate), place.op};
  };
  Cause cause{.running = member(0), .posted = member(0)};
  const std::int32_t members = program().mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
  for (std::int32_t coordinate = 1; coordinate < members; ++coordinate) {
    const Place at_member = member(coordinate);
    if (times.price(at_member.rank, at_member.op) > times.price(cause.running.rank, cause.running.op)) {
      cause.running = at_member;
    }
    cause.posted = later_posted(times, cause.posted, at_member);
  }
  return cause;
}

/// Compares the last op of each lane, since no other op can end last.
PathFinder::Place PathFinder::last_end(const RunTimes& times) const {
  Place last{.op = OpId{-1}};
  Instant latest;
  for (Rank rank = 0; rank < program().mesh.ranks(); ++rank) {
    for (const std::int32_t end_of_lane : last_on_lane_) {
      const OpId op = taking_part(rank, end_of_lane);
      if (op != OpId{-1} && times.end(rank, op) > latest) {
        last = {rank, op};
        latest = times.end(rank, op);
      }
    }
  }
  return last;
}

CriticalPath critical_path(const Lowered& lowered, const Costs& costs, const Timeline& timeline) {
  const std::size_t ops = lowered.program->ops.size();
  std::vector<Instant> ends(ops * static_cast<std::size_t>(lowered.program->mesh.ranks()));
  for (const OpSpan& span : timeline) {
    ends[static_cast<std::size_t>(span.rank) * ops + position(span.op)] = span.end;
  }
  return PathFinder(lowered, costs.issue)
      .find({.end = [&](Rank rank, OpId op) { return ends[static_cast<std::size_t>(rank) * ops + position(op)]; },
             .price = [&](Rank rank, OpId op) { return costs.of(rank, position(op)); }});
}

}  // namespace commfuse
