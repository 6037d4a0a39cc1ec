// SPDX-License-Identifier: Apache-2.0
#include "model/proof/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>

namespace commfuse {

namespace {

/// Progress of an op on one rank.
struct Progress {
  bool posted = false;
  bool sent = false;
  bool received = false;
  bool ended = false;
  std::int32_t joined = 0;  // collective: number of members that have posted; counted at the member at coordinate 0
};

class Run {
 public:
  Run(const Program& program, const Matching& matching, Ranks which, std::vector<Post>* posts)
      : program_(program),
        matching_(matching),
        posts_(posts),
        together_(which == Ranks::first),
        ops_(program.ops.size()),
        lanes_(program.lanes.size()),
        heads_(program.lanes.size() * ranks(), 0),
        progress_(program.ops.size() * ranks()),
        queued_(ranks(), true) {
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      lanes_[program.ops[op].lane].push_back(OpId{static_cast<std::int32_t>(op)});
    }
    for (Rank rank = 0; rank < end(); ++rank) {
      coordinates_.push_back(program.mesh.coordinates(rank));
      queue_.push_back(rank);
    }
    events_.reserve(progress_.size());
  }

  std::vector<Event> events() {
    while (!queue_.empty()) {
      const Rank rank = queue_.front();
      queue_.pop_front();
      queued_[static_cast<std::size_t>(rank)] = false;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        advance(rank, lane);
      }
    }
    return std::move(events_);
  }

  /// Returns the first op of a rank that has not ended; nullopt if all have. All ops before this op have ended, so it
  /// is posted and waits for other ranks.
  [[nodiscard]] std::optional<OpId> stuck(Rank rank) const {
    bool all_ended = true;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      all_ended = all_ended && heads_[static_cast<std::size_t>(rank) * lanes_.size() + lane] == lanes_[lane].size();
    }
    if (all_ended) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const OpId op{static_cast<std::int32_t>(i)};
      if (takes_part(rank, op) && !at(rank, op).ended) {
        return op;
      }
    }
    return std::nullopt;
  }

  /// Returns one past the last rank that runs.
  [[nodiscard]] Rank end() const { return together_ ? 1 : program_.mesh.ranks(); }

  [[nodiscard]] std::string stuck_in_words(Rank rank, OpId op) const {
    const Shape& shape = program_.shapes[program_.ops[position(op)].shape];
    Rank other = rank;
    OpId awaited = op;
    if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
      for (std::int32_t i = 0; at(other, op).posted; ++i) {
        other = program_.mesh.member(rank, collective->axis, i);
      }
    } else {
      const auto& exchange = std::get<ExchangeShape>(shape);
      const bool sending = exchange.sends && !at(rank, op).sent && exchange.protocol != Protocol::pull;
      other = sending ? target_of(program_, exchange, rank) : source_of(program_, exchange, rank);
      awaited = OpId{sending ? matching_.receiver(rank, op) : matching_.sender(rank, op)};
    }
    return fmt::format("rank {} in {} waits for {} of rank {}", rank, op_in_words(program_, op),
                       op_in_words(program_, awaited), other);
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(end()); }
  [[nodiscard]] Rank target(const ExchangeShape& exchange, Rank rank) const {
    return together_ ? rank : target_of(program_, exchange, rank);
  }
  [[nodiscard]] Rank source(const ExchangeShape& exchange, Rank rank) const {
    return together_ ? rank : source_of(program_, exchange, rank);
  }
  [[nodiscard]] bool takes_part(Rank rank, OpId op) const {
    return matching_.uniform || program_.ops[position(op)].where.holds(coordinates_[static_cast<std::size_t>(rank)]);
  }
  [[nodiscard]] const Progress& at(Rank rank, OpId op) const {
    return progress_[static_cast<std::size_t>(rank) * ops_ + position(op)];
  }
  Progress& at(Rank rank, OpId op) { return progress_[static_cast<std::size_t>(rank) * ops_ + position(op)]; }

  void advance(Rank rank, std::size_t lane) {
    std::size_t& head = heads_[static_cast<std::size_t>(rank) * lanes_.size() + lane];
    for (; head < lanes_[lane].size(); ++head) {
      const OpId op = lanes_[lane][head];
      if (!takes_part(rank, op)) {
        continue;
      }
      const Progress& progress = at(rank, op);
      if (!progress.posted && waits_ended(rank, op)) {
        post(rank, op);
      }
      if (!progress.ended) {
        return;
      }
    }
  }

  [[nodiscard]] bool waits_ended(Rank rank, OpId op) const {
    for (const OpId wait : program_.waits_of(program_.ops[position(op)])) {
      if (takes_part(rank, wait) && !at(rank, wait).ended) {
        return false;
      }
    }
    return true;
  }

  void post(Rank rank, OpId op) {
    at(rank, op).posted = true;
    if (posts_ != nullptr) {
      posts_->push_back({rank, op});
    }
    const Shape& shape = program_.shapes[program_.ops[position(op)].shape];
    if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      if (meets_itself(rank, op)) {
        complete_immediately(rank, op, *exchange);
        return;
      }
      if (exchange->sends) {
        meet(rank, op, target(*exchange, rank), OpId{matching_.receiver(rank, op)});
      }
      if (exchange->receives) {
        meet(source(*exchange, rank), OpId{matching_.sender(rank, op)}, rank, op);
      }
      end_exchange(rank, op, *exchange);
    } else if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
      join(rank, op, collective->axis);
    } else {
      events_.push_back({.kind = Event::Kind::computed, .rank = rank, .op = op});
      end(rank, op);
    }
  }

  /// Returns true if all ranks advance together and the op's send meets its own receive.
  [[nodiscard]] bool meets_itself(Rank rank, OpId op) const {
    return together_ && matching_.receiver(rank, op) == static_cast<std::int32_t>(op) &&
           matching_.sender(rank, op) == static_cast<std::int32_t>(op);
  }

  /// Completes an exchange that ends as soon as it is posted.
  void complete_immediately(Rank rank, OpId op, const ExchangeShape& exchange) {
    Progress& progress = at(rank, op);
    progress.sent = progress.received = true;
    record_transfer(rank, op, rank, op, exchange);
    end(rank, op);
  }

  void record_transfer(Rank source, OpId send, Rank target, OpId receive, const ExchangeShape& exchange) {
    events_.push_back({.kind = is_credit(exchange) ? Event::Kind::credited : Event::Kind::sent,
                       .rank = source,
                       .op = send,
                       .target = target,
                       .target_op = receive});
  }

  void meet(Rank source, OpId send, Rank target, OpId receive) {
    const ExchangeShape& exchange = shape_of(send);
    Progress& from = at(source, send);
    Progress& to = at(target, receive);
    const bool receiver_ready = exchange.protocol == Protocol::push || to.posted;
    if (!from.posted || !receiver_ready || from.sent) {
      return;
    }
    from.sent = true;
    to.received = true;
    record_transfer(source, send, target, receive, exchange);
    end_exchange(source, send, exchange);
    end_exchange(target, receive, shape_of(receive));
  }

  void end_exchange(Rank rank, OpId op, const ExchangeShape& exchange) {
    const Progress& progress = at(rank, op);
    const bool sent = progress.sent || !exchange.sends || exchange.protocol == Protocol::pull;
    if (progress.posted && !progress.ended && sent && progress.received == exchange.receives) {
      end(rank, op);
    }
  }

  [[nodiscard]] const ExchangeShape& shape_of(OpId exchange) const {
    return std::get<ExchangeShape>(program_.shapes[program_.ops[position(exchange)].shape]);
  }

  void join(Rank rank, OpId op, int axis) {
    const std::int32_t extent = together_ ? 1 : program_.mesh.axes[static_cast<std::size_t>(axis)].extent;
    const Rank first = program_.mesh.member(rank, axis, 0);
    if (++at(first, op).joined < extent) {
      return;
    }
    events_.push_back({.kind = Event::Kind::collected, .rank = first, .op = op});
    for (std::int32_t i = 0; i < extent; ++i) {
      end(program_.mesh.member(rank, axis, i), op);
    }
  }

  void end(Rank rank, OpId op) {
    at(rank, op).ended = true;
    if (!queued_[static_cast<std::size_t>(rank)]) {
      queued_[static_cast<std::size_t>(rank)] = true;
      queue_.push_back(rank);
    }
  }

  const Program& program_;
  const Matching& matching_;
  std::vector<Post>* posts_;
  bool together_;
  std::size_t ops_;
  std::vector<std::vector<OpId>> lanes_;  // in program order; ranks skip the ops in which they take no part
  std::vector<std::size_t> heads_;        // by rank and lane
  std::vector<Progress> progress_;        // by rank and op
  std::vector<Coordinates> coordinates_;
  std::vector<bool> queued_;
  std::deque<Rank> queue_;  // ranks on which something ended
  std::vector<Event> events_;
};

}  // namespace

std::vector<Event> run_abstractly(const Program& program, const Matching& matching, Findings& findings, Ranks ranks,
                                  std::vector<Post>* posts) {
  constexpr int named = 4;
  Run run(program, matching, ranks, posts);
  std::vector<Event> events = run.events();
  std::string sentence;
  OpId first{-1};
  int stuck = 0;
  for (Rank rank = 0; rank < run.end(); ++rank) {
    if (const auto op = run.stuck(rank)) {
      first = stuck == 0 ? *op : first;
      if (stuck++ < named) {
        sentence += (sentence.empty() ? "no rank can proceed: " : "; ") + run.stuck_in_words(rank, *op);
      }
    }
  }
  if (stuck > named) {
    sentence += fmt::format("; and {} more ranks", stuck - named);
  }
  if (stuck > 0) {
    findings.add(FindingKind::deadlock, static_cast<std::int32_t>(first), [&] { return sentence; });
  }
  return events;
}

}  // namespace commfuse
