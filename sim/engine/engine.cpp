// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

void Engine::run(const Plan& plan, const Costs& costs, Recorder& recorder) {
  plan_ = &plan;
  program_ = plan.lowered.program.get();
  costs_ = &costs;
  recorder_ = &recorder;
  prepare();
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), Later{});
    const Event event = queue_.back();
    queue_.pop_back();
    now_ = event.when;
    handle(event);
  }
  const auto waiting = std::count_if(states_.begin(), states_.end(), [](const State& s) { return s.pending >= 0; });
  check(ended_ == static_cast<std::size_t>(waiting), "a checked program runs to its end");
}

void Engine::prepare() {
  ops_ = program_->ops.size();
  const Rank ranks = program_->mesh.ranks();
  const std::size_t instances = ops_ * static_cast<std::size_t>(ranks);
  check(costs_->duration.size() == ops_ && costs_->issue.size() == ops_ &&
            (costs_->by_rank.empty() || costs_->by_rank.size() == instances),
        "costs belong to the program");
  check(instances < 0xffffffffULL, "a run has fewer than 2^32 ops over all ranks");
  now_ = 0;
  scheduled_ = 0;
  ended_ = 0;
  queue_.clear();
  states_.assign(instances, State{});
  arrivals_.assign(instances, 0);
  issued_.resize(instances);
  recorder_->start(ranks);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const RankPlan& local = plan_->of(rank);
    std::int64_t issued = 0;
    for (std::size_t op = 0; op < ops_; ++op) {
      const std::uint32_t here = instance(rank, op);
      states_[here].pending = local.pending[op];
      if (local.pending[op] >= 0) {
        issued += costs_->issue[op].count();
        issued_[here] = issued;
      }
    }
  }
  for (std::uint32_t here = 0; here < instances; ++here) {
    if (states_[here].pending == 0) {
      become_ready(here);
    }
  }
}

void Engine::schedule(std::int64_t when, EventKind kind, std::uint32_t instance) {
  queue_.push_back({when, scheduled_++, instance, kind});
  std::push_heap(queue_.begin(), queue_.end(), Later{});
}

void Engine::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::post: post(event.instance); break;
    case EventKind::end: end(event.instance); break;
    case EventKind::half_end: end_half(event.instance); break;
    case EventKind::collective_end: end_collective(event.instance); break;
  }
}

/// Everything it waits for has ended and its lane is free.
void Engine::become_ready(std::uint32_t instance) {
  const std::int64_t issued = issued_[instance];
  if (issued > now_) {
    schedule(issued, EventKind::post, instance);
  } else {
    post(instance);
  }
}

void Engine::post(std::uint32_t instance) {
  states_[instance].posted = true;
  const std::size_t op = op_of(instance);
  const Shape& shape = program_->shapes[program_->ops[op].shape];
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    post_exchange(instance, *exchange);
  } else if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
    arrive(instance, *collective);
  } else {
    states_[instance].start = now_;
    schedule(now_ + costs_->of(rank_of(instance), op).count(), EventKind::end, instance);
  }
}

void Engine::post_exchange(std::uint32_t instance, const ExchangeShape& exchange) {
  states_[instance].halves = static_cast<std::int8_t>((exchange.sends ? 1 : 0) + (exchange.receives ? 1 : 0));
  if (exchange.sends && states_[receiver_of(instance)].posted) {
    start_half(instance);
  }
  if (exchange.receives) {
    const std::uint32_t sender = sender_of(instance);
    if (sender != instance && states_[sender].posted) {  // to itself: the send half has seen to it
      start_half(sender);
    }
  }
}

void Engine::start_half(std::uint32_t sender) {
  for (const std::uint32_t end : {sender, receiver_of(sender)}) {
    if (states_[end].start < 0) {
      states_[end].start = now_;
    }
  }
  schedule(now_ + costs_->of(rank_of(sender), op_of(sender)).count(), EventKind::half_end, sender);
}

void Engine::end_half(std::uint32_t sender) {
  for (const std::uint32_t here : {sender, receiver_of(sender)}) {
    if (--states_[here].halves == 0) {
      end(here);
    }
  }
}

void Engine::arrive(std::uint32_t instance, const CollectiveShape& collective) {
  const std::size_t op = op_of(instance);
  const std::uint32_t first = this->instance(program_->mesh.member(rank_of(instance), collective.axis, 0), op);
  const auto members = program_->mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
  if (++arrivals_[first] < members) {
    return;
  }
  arrivals_[first] = 0;
  Duration longest{};
  for (std::int32_t coordinate = 0; coordinate < members; ++coordinate) {
    const Rank member = program_->mesh.member(rank_of(first), collective.axis, coordinate);
    states_[this->instance(member, op)].start = now_;
    longest = std::max(longest, costs_->of(member, op));
  }
  schedule(now_ + longest.count(), EventKind::collective_end, first);
}

void Engine::end_collective(std::uint32_t instance) {
  const std::size_t op = op_of(instance);
  const auto& collective = std::get<CollectiveShape>(program_->shapes[program_->ops[op].shape]);
  const auto members = program_->mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
  for (std::int32_t coordinate = 0; coordinate < members; ++coordinate) {
    end(this->instance(program_->mesh.member(rank_of(instance), collective.axis, coordinate), op));
  }
}

void Engine::end(std::uint32_t instance) {
  ++ended_;
  const Rank rank = rank_of(instance);
  const std::size_t op = op_of(instance);
  recorder_->record(rank, OpId{static_cast<std::int32_t>(op)}, program_->ops[op].purpose,
                    Instant{Duration{states_[instance].start}}, Instant{Duration{now_}});
  for (const std::int32_t after : plan_->of(rank).after(op)) {
    const std::uint32_t next = this->instance(rank, static_cast<std::size_t>(after));
    if (--states_[next].pending == 0) {
      become_ready(next);
    }
  }
}

std::uint32_t Engine::receiver_of(std::uint32_t sender) const {
  const std::size_t op = op_of(sender);
  const auto& exchange = std::get<ExchangeShape>(program_->shapes[program_->ops[op].shape]);
  const OpId id{static_cast<std::int32_t>(op)};
  return instance(target_of(*program_, exchange, rank_of(sender)),
                  static_cast<std::size_t>(plan_->lowered.matching.receiver(rank_of(sender), id)));
}

std::uint32_t Engine::sender_of(std::uint32_t receiver) const {
  const std::size_t op = op_of(receiver);
  const auto& exchange = std::get<ExchangeShape>(program_->shapes[program_->ops[op].shape]);
  const OpId id{static_cast<std::int32_t>(op)};
  return instance(source_of(*program_, exchange, rank_of(receiver)),
                  static_cast<std::size_t>(plan_->lowered.matching.sender(rank_of(receiver), id)));
}

}  // namespace commfuse
