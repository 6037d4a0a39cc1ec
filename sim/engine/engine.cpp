// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "model/check.h"
#include "model/config_error.h"
#include "model/program/index.h"
#include "model/program/names.h"
#include "model/program/order.h"

namespace commfuse {

void Engine::run(const Plan& plan, const Costs& costs, Recorder& recorder, const EngineOptions& options) {
  plan_ = &plan;
  kinds_ = plan.kinds.data();
  program_ = plan.lowered.program.get();
  costs_ = &costs;
  recorder_ = &recorder;
  const Faults no_faults;
  const Faults& faults = options.faults == nullptr ? no_faults : *options.faults;
  require_possible(faults, program_->mesh.ranks());
  faults_.start(faults, program_->mesh.ranks());
  queue_.start(options.shuffle_ties);
  lanes_ = static_cast<std::uint32_t>(program_->lanes.size());
  fold(options);
  slots_.resize(static_cast<std::size_t>(mesh_.ranks) * lanes_);
  fluid_on_ = options.fluid != nullptr;
  if (fluid_on_) {
    check(options.fluid->wiring->ranks == static_cast<std::size_t>(mesh_.ranks),
          "the wiring and the program have the same number of ranks");
    fluid_.start(*options.fluid, faults_, lanes_, slots_.size());
  }
  prepare();
  fluid_on_ ? run_fluid() : run_static();
  require_all_ended();
}

void Engine::fold(const EngineOptions& options) {
  const Rank rank_count = program_->mesh.ranks();
  const std::optional<FoldedMesh> fold =
      folded(program_->mesh, options.first_ranks == 0 ? rank_count : options.first_ranks);
  check(fold.has_value(), "the simulated ranks represent all ranks");
  check(fold->ranks == rank_count || (plan_->lowered.matching.uniform && options.faults == nullptr),
        "ranks that represent others run the same ops");
  mesh_ = *fold;
}

void Engine::run_static() {
  TimedEvent event;
  while (queue_.pop(event)) {
    now_ = event.when;
    handle(event);
  }
}

/// Changes speeds only after all events of an instant.
void Engine::run_fluid() {
  fluid_.settle(now_, queue_);
  while (const std::optional<std::int64_t> next = queue_.next()) {
    now_ = *next;
    for (TimedEvent event; queue_.next() == next && queue_.pop(event);) {
      const std::uint32_t slot = event.slot();
      if (event.kind() == EventKind::wake) {
        fluid_.wake(slot, now_, queue_);
      } else if (event.kind() != EventKind::end && event.kind() != EventKind::half_end) {
        handle(event);
      } else if (fluid_.finish_stage(slot, now_)) {
        head_of(slots_[slot]).kind == OpKind::exchange ? end_half(slot) : end(slot);
      }
    }
    fluid_.settle(now_, queue_);
  }
}

void Engine::prepare() {
  const auto ranks = static_cast<std::size_t>(mesh_.ranks);
  check(belongs(*costs_, *program_, ranks), "costs belong to the program");
  check(program_->lanes.size() * ranks < EventQueue::max_slots, "a run has fewer than 2^29 lanes over all ranks");
  now_ = 0;
  add_up_issue_costs();
  recorder_->start(mesh_.ranks);
  arrivals_.assign(program_->mesh.axes.size() * lanes_ * ranks, 0);
  std::uint32_t slot = 0;
  for (Rank rank = 0; rank < mesh_.ranks; ++rank) {
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
      slots_[slot++] = {.head = plan_of(rank).first[lane], .rank = rank, .lane = static_cast<std::uint16_t>(lane)};
    }
  }
  for (slot = 0; slot < slots_.size(); ++slot) {
    try_head(slot);
  }
}

void Engine::add_up_issue_costs() {
  const std::size_t ops = program_->ops.size();
  issued_.resize(plan_->kinds.size() * ops);
  for (std::size_t kind = 0; kind < plan_->kinds.size(); ++kind) {
    std::int64_t* const issued = issued_.data() + kind * ops;
    std::fill(issued, issued + ops, 0);
    for (const PlannedOp& op : plan_->kinds[kind].ops) {
      issued[position(op.op)] = costs_->issue[position(op.op)].count();
    }
    for (std::size_t op = 1; op < ops; ++op) {
      issued[op] += issued[op - 1];
    }
  }
}

void Engine::handle(const TimedEvent& event) {
  const std::uint32_t slot = event.slot();
  switch (event.kind()) {
    case EventKind::post: post(slot); break;
    case EventKind::end: end(slot); break;
    case EventKind::half_end: end_half(slot); break;
    case EventKind::own_half_end: end_own_half(slot); break;
    case EventKind::collective_end: end_collective(slot); break;
    case EventKind::wake: break;  // run_fluid() handles it
  }
}

/// Called when the lane is free. Posts the op at the head, immediately or once it is issued, if the ops that it waits
/// for have ended.
void Engine::try_head(std::uint32_t slot) {
  Slot& state = slots_[slot];
  const RankPlan& plan = plan_of(state.rank);
  if (state.head == plan.first[state.lane + 1U]) {
    return;
  }
  const PlannedOp& op = plan.ops[state.head];
  for (const PlannedWait& wait : plan.waits_of(op)) {
    if (slots_[slot - state.lane + wait.lane].head <= wait.place) {
      return;
    }
  }
  const std::size_t kind = plan_->kind_of_rank[static_cast<std::size_t>(state.rank)];
  const std::int64_t issued =
      issued_[kind * program_->ops.size() + position(op.op)] + faults_.late()[static_cast<std::size_t>(state.rank)];
  if (issued > now_) {
    state.phase = Phase::issuing;
    queue_.push(issued, EventKind::post, {.slot = slot, .lane = state.lane});
  } else {
    post(slot);
  }
}

void Engine::post(std::uint32_t slot) {
  Slot& state = slots_[slot];
  const PlannedOp& op = head_of(state);
  state.phase = Phase::posted;
  if (fluid_on_) {
    hold_sms(slot, op, 1);
  }
  switch (op.kind) {
    case OpKind::exchange: post_exchange(slot, op); break;
    case OpKind::collective: arrive(slot, op); break;
    case OpKind::gemm:
    case OpKind::attention:
    case OpKind::elementwise: start_compute(slot, op.op); break;
  }
}

void Engine::start_compute(std::uint32_t slot, OpId op) {
  Slot& state = slots_[slot];
  state.start = now_;
  const std::int64_t time = faults_.of_compute(state.rank, costs_->of(state.rank, position(op))).count();
  if (fluid_on_) {
    fluid_.begin(FluidRun::Kernel{slot, state.lane, state.rank, static_cast<std::uint32_t>(op), time}, now_, queue_);
  } else {
    queue_.push(now_ + time, EventKind::end, {.slot = slot, .lane = state.lane});
  }
}

bool Engine::has_posted(std::uint32_t slot, std::int32_t op) const {
  const Slot& state = slots_[slot];
  return state.phase == Phase::posted && static_cast<std::int32_t>(head_of(state).op) == op;
}

bool Engine::has_ended(std::uint32_t slot, std::int32_t op) const {
  const Slot& state = slots_[slot];
  return state.head == plan_of(state.rank).first[state.lane + 1U] || static_cast<std::int32_t>(head_of(state).op) > op;
}

/// The two ends of a half are on lanes of the same name, so the peer's op is either at the head of its lane or not
/// posted yet. The lane of the sender of a push or a pull may also have moved past the op.
void Engine::post_exchange(std::uint32_t slot, const PlannedOp& exchange) {
  Slot& state = slots_[slot];
  state.halves = static_cast<std::int8_t>((exchange.sends ? 1 : 0) + (exchange.receives ? 1 : 0));
  if (exchange.protocol != Protocol::rendezvous) {
    state.start = now_;
    state.sent = false;
    return exchange.protocol == Protocol::push ? post_push(slot, exchange) : post_pull(slot, exchange);
  }
  const Matching& matching = plan_->lowered.matching;
  if (exchange.sends) {
    const std::uint32_t target = target_of(slot, exchange);
    if (has_posted(target, matching.receiver(state.rank, exchange.op))) {
      start_half(slot, target);
    }
  }
  if (exchange.receives) {
    const std::uint32_t source = source_of(slot, exchange);
    // If the rank exchanges with itself, its send has already started this half.
    if (source != slot && has_posted(source, matching.sender(state.rank, exchange.op))) {
      start_half(source, slot);
    }
  }
}

void Engine::post_push(std::uint32_t slot, const PlannedOp& push) {
  if (push.sends) {
    start_half(slot, target_of(slot, push));
  }
  if (push.receives) {
    const std::uint32_t source = source_of(slot, push);
    const std::int32_t sender = plan_->lowered.matching.sender(slots_[slot].rank, push.op);
    if (has_ended(source, sender) || (has_posted(source, sender) && slots_[source].sent)) {
      queue_.push(now_, EventKind::own_half_end, {.slot = slot, .lane = slots_[slot].lane});
    }
  }
}

/// The receiver may fetch the data long after the sender has moved on.
void Engine::post_pull(std::uint32_t slot, const PlannedOp& pull) {
  const Matching& matching = plan_->lowered.matching;
  const Rank rank = slots_[slot].rank;
  if (pull.sends) {
    queue_.push(now_, EventKind::own_half_end, {.slot = slot, .lane = slots_[slot].lane});
    const std::uint32_t target = target_of(slot, pull);
    if (has_posted(target, matching.receiver(rank, pull.op))) {
      start_half(target, slot);
    }
  }
  if (pull.receives) {
    const std::uint32_t source = source_of(slot, pull);
    const std::int32_t sender = matching.sender(rank, pull.op);
    const bool is_started_by_send = source == slot && OpId{sender} == pull.op;
    if (!is_started_by_send && (has_posted(source, sender) || has_ended(source, sender))) {
      start_half(slot, source);
    }
  }
}

/// The mover is the receiver of a pull, otherwise the sender; it holds its lane during the half. The sender's op
/// determines the price.
void Engine::start_half(std::uint32_t mover, std::uint32_t other) {
  const PlannedOp& exchange = head_of(slots_[mover]);
  const bool pulled = exchange.protocol == Protocol::pull;
  if (exchange.protocol == Protocol::rendezvous) {
    for (const std::uint32_t end : {mover, other}) {
      if (slots_[end].start < 0) {
        slots_[end].start = now_;
      }
    }
  }
  const RankPair link{slots_[pulled ? other : mover].rank, slots_[pulled ? mover : other].rank};
  const OpId op = pulled ? OpId{plan_->lowered.matching.sender(link.to, exchange.op)} : exchange.op;
  const std::int64_t time = scaled(costs_->of(link.from, position(op)), faults_.slowness(link)).count();
  const std::uint16_t lane = slots_[mover].lane;
  if (fluid_on_) {
    fluid_.begin(FluidRun::Transfer{mover, lane, static_cast<std::uint32_t>(op), link, time}, now_, queue_);
    return;
  }
  if (const std::int64_t end = faults_.end_of(link, {.start = now_, .time = time}); end != FaultTable::never) {
    queue_.push(end, EventKind::half_end, {.slot = mover, .lane = lane});
  }
}

void Engine::end_half(std::uint32_t mover) {
  const PlannedOp& exchange = head_of(slots_[mover]);
  if (exchange.protocol == Protocol::pull) {
    return end_own_half(mover);
  }
  const std::uint32_t receiver = target_of(mover, exchange);
  const std::int32_t received = plan_->lowered.matching.receiver(slots_[mover].rank, exchange.op);
  const bool is_awaited = exchange.protocol == Protocol::rendezvous || has_posted(receiver, received);
  slots_[mover].sent = true;
  end_own_half(mover);
  if (is_awaited) {
    end_own_half(receiver);
  }
}

void Engine::end_own_half(std::uint32_t slot) {
  if (--slots_[slot].halves == 0) {
    end(slot);
  }
}

/// A group has at most one open collective per lane and axis: no rank posts the next one before this one ends.
void Engine::arrive(std::uint32_t slot, const PlannedOp& collective) {
  const auto axis = static_cast<std::size_t>(collective.axis);
  const std::int32_t coordinate = plan_->coordinates[static_cast<std::size_t>(slots_[slot].rank)][axis];
  const std::uint32_t first = shifted(slot, collective.axis, -coordinate);
  std::int32_t& arrived = arrivals_[axis * slots_.size() + first];
  if (++arrived < mesh_.extents[axis]) {
    return;
  }
  arrived = 0;
  Duration longest{};
  for (std::int32_t i = 0; i < mesh_.extents[axis]; ++i) {
    Slot& member = slots_[shifted(first, collective.axis, i)];
    member.start = now_;
    longest = std::max(longest, costs_->of(member.rank, position(collective.op)));
  }
  queue_.push(now_ + longest.count(), EventKind::collective_end, {.slot = first, .lane = slots_[first].lane});
}

void Engine::end_collective(std::uint32_t slot) {
  const int axis = head_of(slots_[slot]).axis;
  for (std::int32_t i = 0; i < mesh_.extents[static_cast<std::size_t>(axis)]; ++i) {
    end(shifted(slot, axis, i));
  }
}

void Engine::end(std::uint32_t slot) {
  Slot& state = slots_[slot];
  const RankPlan& plan = plan_of(state.rank);
  const PlannedOp& op = plan.ops[state.head];
  if (fluid_on_) {
    hold_sms(slot, op, -1);
  }
  if (now_ > FaultTable::longest_run) {
    refuse_too_long(state.rank);
  }
  recorder_->record(state.rank, op.op, op.purpose, Instant{Duration{state.start}}, Instant{Duration{now_}});
  ++state.head;
  state.start = -1;
  state.phase = Phase::waiting;
  try_head(slot);
  const std::uint32_t first = slot - state.lane;
  for (const std::uint32_t lane : plan.watchers_of(op)) {
    if (slots_[first + lane].phase == Phase::waiting) {
      try_head(first + lane);
    }
  }
}

void Engine::refuse_too_long(Rank rank) {
  throw ConfigError(
      fmt::format("rank {} is still running after 2.5 hours, beyond which times are not exact; use fewer tokens "
                  "per run, or milder faults",
                  rank));
}

void Engine::hold_sms(std::uint32_t slot, const PlannedOp& op, int change) {
  const Slot& state = slots_[slot];
  const bool communicates = op.kind == OpKind::collective || op.kind == OpKind::exchange;
  if (communicates && communication_holds_sms(program_->lanes[state.lane].kind)) {
    fluid_.add_resident(state.rank, op.kind, change);
  }
}

std::uint32_t Engine::shifted(std::uint32_t slot, int axis, std::int32_t shift) const {
  const auto axis_index = static_cast<std::size_t>(axis);
  const std::int32_t from = plan_->coordinates[static_cast<std::size_t>(slots_[slot].rank)][axis_index];
  const std::int32_t extent = mesh_.extents[axis_index];
  std::int32_t to = from + shift;
  if (to >= extent || to < 0) {
    to = wrapped(to, extent);
  }
  return slot + static_cast<std::uint32_t>((to - from) * mesh_.strides[axis_index]) * lanes_;
}

std::string Engine::stuck_in_words(std::uint32_t slot) const {
  const Slot& state = slots_[slot];
  const RankPlan& plan = plan_of(state.rank);
  const PlannedOp& op = plan.ops[state.head];
  const Lane& lane = program_->lanes[state.lane];
  std::string words = fmt::format("rank {} in {} on lane {}{} waits for ", state.rank, op_in_words(*program_, op.op),
                                  name_of(lane.kind), lane.number);
  const auto waits_for = [&](OpId awaited, Rank rank) {
    return words + fmt::format("{} of rank {}", op_in_words(*program_, awaited), rank);
  };
  if (state.phase != Phase::posted) {
    for (const PlannedWait& wait : plan.waits_of(op)) {
      if (slots_[slot - state.lane + wait.lane].head <= wait.place) {
        return waits_for(plan.ops[wait.place].op, state.rank);
      }
    }
  }
  if (op.kind == OpKind::collective) {
    return words + "the rest of its group";
  }
  const Matching& matching = plan_->lowered.matching;
  const Rank target = slots_[target_of(slot, op)].rank;
  if (op.sends && op.protocol == Protocol::rendezvous &&
      !has_posted(target_of(slot, op), matching.receiver(state.rank, op.op))) {
    return waits_for(OpId{matching.receiver(state.rank, op.op)}, target);
  }
  return waits_for(OpId{matching.sender(state.rank, op.op)}, slots_[source_of(slot, op)].rank);
}

void Engine::require_no_lost_link(std::uint32_t slot) const {
  const Slot& state = slots_[slot];
  const PlannedOp& op = head_of(state);
  const bool pulls = op.protocol == Protocol::pull;
  if (op.kind != OpKind::exchange || !(pulls ? op.receives : op.sends) || state.phase != Phase::posted) {
    return;
  }
  const std::uint32_t other = pulls ? source_of(slot, op) : target_of(slot, op);
  const Matching& matching = plan_->lowered.matching;
  const std::int32_t partner = pulls ? matching.sender(state.rank, op.op) : matching.receiver(state.rank, op.op);
  const bool has_started =
      op.protocol == Protocol::push || has_posted(other, partner) || (pulls && has_ended(other, partner));
  const Rank other_rank = slots_[other].rank;
  const RankPair link = pulls ? RankPair{other_rank, state.rank} : RankPair{state.rank, other_rank};
  if (has_started && faults_.stays_down(link)) {
    throw ConfigError(
        fmt::format("rank {} never finishes {}, because the link from rank {} to rank {} stays down; add the time at "
                    "which it comes up",
                    state.rank, op_in_words(*program_, op.op), link.from, link.to));
  }
}

void Engine::require_all_ended() const {
  constexpr int max_named = 4;
  std::string sentence;
  int stuck = 0;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& state = slots_[slot];
    if (state.head == plan_of(state.rank).first[state.lane + 1U]) {
      continue;
    }
    require_no_lost_link(slot);
    if (++stuck <= max_named) {
      sentence += (stuck == 1 ? "" : "; ") + stuck_in_words(slot);
    }
  }
  if (stuck > max_named) {
    sentence += fmt::format("; and {} more lanes", stuck - max_named);
  }
  if (stuck > 0) {
    check(false, ("a checked program runs to its end, but " + sentence).c_str());
  }
  check(!fluid_on_ || fluid_.all_over(), "every transfer arrives completely");
}

}  // namespace commfuse
