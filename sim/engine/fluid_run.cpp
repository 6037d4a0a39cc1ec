// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/fluid_run.h"

#include <algorithm>
#include <cmath>

namespace commfuse {

void FluidRun::start(const Fluid& fluid, const FaultTable& faults, std::uint32_t lanes, std::size_t slots) {
  fluid_ = &fluid;
  wiring_ = fluid.wiring.get();
  faults_ = &faults;
  lanes_ = lanes;
  jobs_.assign(slots, Job{});
  links_.resize(wiring_->capacity.size());
  for (LinkState& link : links_) {
    link.members.clear();
    link.tight = link.dirty = link.gathered = false;
  }
  ranks_.assign(wiring_->ranks, RankState{});
  fresh_.clear();
  dirty_links_.clear();
  dirty_ranks_.clear();
}

void FluidRun::begin(const Kernel& kernel, std::int64_t now, EventQueue& queue) {
  Job& job = jobs_[kernel.slot];
  job = {.remaining = static_cast<double>(kernel.time),
         .since = now,
         .op = kernel.op,
         .lane = kernel.lane,
         .kind = JobKind::kernel,
         .fresh = job.fresh};
  if (kernel.time == 0) {
    job.end = now;
    queue.push(now, EventKind::end, {.slot = kernel.slot, .lane = kernel.lane});
    return;
  }
  RankState& rank = ranks_[static_cast<std::size_t>(kernel.rank)];
  if (!rank.dirty) {
    rank.dirty = true;
    dirty_ranks_.push_back(kernel.rank);
  }
}

void FluidRun::begin(const Transfer& transfer, std::int64_t now, EventQueue& queue) {
  Job& job = jobs_[transfer.slot];
  job = {.slowness = faults_->slowness(transfer.link),
         .path = wiring_->path_of(transfer.link.from, transfer.op),
         .link = transfer.link,
         .op = transfer.op,
         .lane = transfer.lane,
         .kind = JobKind::transfer,
         .fresh = job.fresh};
  const Duration latency = job.path == nullptr ? Duration{transfer.time} : scaled(job.path->latency, job.slowness);
  job.latency = std::min(latency.count(), transfer.time);
  job.drain = transfer.time - job.latency;
  if (!open_stage(job, -1, now)) {
    job.end = now;
    queue.push(now, EventKind::half_end, {.slot = transfer.slot, .lane = transfer.lane});
    return;
  }
  mark_fresh(transfer.slot);
  if (const std::int64_t change = faults_->next_change(job.link, now); change != FaultTable::never) {
    queue.push(change, EventKind::wake, {.slot = transfer.slot, .lane = transfer.lane});
  }
}

void FluidRun::add_resident(Rank rank, OpKind kind, int change) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  state.resident[kind == OpKind::collective ? 1 : 0] += change;
  if (!state.dirty) {
    state.dirty = true;
    dirty_ranks_.push_back(rank);
  }
}

bool FluidRun::finish_stage(std::uint32_t slot, std::int64_t now) {
  Job& job = jobs_[slot];
  if (job.end != now) {
    return false;
  }
  if (job.kind == JobKind::transfer) {
    leave(slot);
    if (open_stage(job, job.stage + 1, now)) {
      mark_fresh(slot);
      return false;
    }
  }
  job.kind = JobKind::none;
  job.end = -1;
  return true;
}

void FluidRun::wake(std::uint32_t slot, std::int64_t now, EventQueue& queue) {
  const Job& job = jobs_[slot];
  if (job.kind != JobKind::transfer) {
    return;
  }
  mark_fresh(slot);
  if (const std::int64_t change = faults_->next_change(job.link, now); change != FaultTable::never) {
    queue.push(change, EventKind::wake, {.slot = slot, .lane = job.lane});
  }
}

void FluidRun::settle(std::int64_t now, EventQueue& queue) {
  settle_kernels(now, queue);
  settle_transfers(now, queue);
}

bool FluidRun::all_over() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.kind == JobKind::none; }) &&
         std::all_of(links_.begin(), links_.end(), [](const LinkState& link) { return link.members.empty(); });
}

void FluidRun::mark_fresh(std::uint32_t slot) {
  if (!jobs_[slot].fresh) {
    jobs_[slot].fresh = true;
    fresh_.push_back(slot);
  }
}

void FluidRun::mark_members_fresh(const LinkState& link) {
  for (const Member& member : link.members) {
    mark_fresh(member.slot);
  }
}

bool FluidRun::open_stage(Job& job, std::int32_t stage, std::int64_t now) {
  const std::int32_t stages = job.path == nullptr ? 0 : static_cast<std::int32_t>(job.path->stages);
  for (; stage < stages; ++stage) {
    if (const double length = length_of(job, stage); length > 0.0) {
      job.stage = stage;
      job.remaining = length;
      job.speed = -1.0;
      job.since = now;
      job.end = -1;
      return true;
    }
  }
  job.stage = stages;
  return false;
}

/// Rounds the ends of stages to whole picoseconds, so that the lengths of all stages add up to the time of the job.
double FluidRun::length_of(const Job& job, std::int32_t stage) const {
  if (stage < 0) {
    return static_cast<double>(job.latency);
  }
  const auto drain = static_cast<double>(job.drain);
  const auto until = [&](std::int32_t i) { return i < 0 ? 0.0 : std::round(drain * stage_of(job, i).until); };
  return until(stage) - until(stage - 1);
}

void FluidRun::draw(std::uint32_t slot) {
  if (!jobs_[slot].draws) {
    jobs_[slot].draws = true;
    const Flow flow = flow_of(jobs_[slot]);
    for (std::size_t link_index = 0; link_index < flow.links.size(); ++link_index) {
      links_[static_cast<std::size_t>(flow.links[link_index])].members.push_back({slot, flow.times_on(link_index)});
      touch(flow.links[link_index]);
    }
  }
}

void FluidRun::leave(std::uint32_t slot) {
  if (jobs_[slot].draws) {
    jobs_[slot].draws = false;
    for (const std::int32_t link : links_of(jobs_[slot])) {
      std::vector<Member>& members = links_[static_cast<std::size_t>(link)].members;
      members.erase(
          std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.slot == slot; }));
      touch(link);
    }
  }
}

void FluidRun::touch(std::int32_t link) {
  LinkState& state = links_[static_cast<std::size_t>(link)];
  if (!state.dirty) {
    state.dirty = true;
    dirty_links_.push_back(link);
  }
}

void FluidRun::settle_kernels(std::int64_t now, EventQueue& queue) {
  for (const Rank rank : dirty_ranks_) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.dirty = false;
    const unsigned communication_mask = (state.resident[0] > 0 ? 1U : 0U) + (state.resident[1] > 0 ? 2U : 0U);
    const std::uint32_t first = static_cast<std::uint32_t>(rank) * lanes_;
    for (std::uint32_t slot = first; slot < first + lanes_; ++slot) {
      if (jobs_[slot].kind == JobKind::kernel) {
        set_speed(slot, fluid_->speed_of(communication_mask, rank, jobs_[slot].op), now, queue);
      }
    }
  }
  dirty_ranks_.clear();
}

/// Only fresh transfers, and transfers that share a tight link with them directly or through other transfers, need a
/// new speed.
void FluidRun::settle_transfers(std::int64_t now, EventQueue& queue) {
  const auto is_halted = [&](const Job& job) { return faults_->down(job.link, now); };
  for (const std::uint32_t slot : fresh_) {
    const Job& job = jobs_[slot];
    if (job.kind == JobKind::transfer && job.stage >= 0) {
      is_halted(job) ? leave(slot) : draw(slot);
    }
  }
  refresh_links();
  gather_neighbours();
  drawing_.clear();
  flows_.clear();
  for (const std::uint32_t slot : fresh_) {
    Job& job = jobs_[slot];
    job.fresh = false;
    if (job.draws) {
      drawing_.push_back(slot);
      flows_.push_back(flow_of(job));
    } else if (job.kind == JobKind::transfer) {
      set_speed(slot, is_halted(job) ? 0.0 : 1.0, now, queue);
    }
  }
  fresh_.clear();
  const auto rates = max_min_.rates(flows_, wiring_->capacity);
  for (std::size_t i = 0; i < drawing_.size(); ++i) {
    set_speed(drawing_[i], rates[i] / flows_[i].cap, now, queue);
  }
}

void FluidRun::refresh_links() {
  for (const std::int32_t id : dirty_links_) {
    LinkState& link = links_[static_cast<std::size_t>(id)];
    link.dirty = false;
    std::sort(link.members.begin(), link.members.end());  // so that the sum does not depend on the order of arrival
    double demand = 0.0;
    for (const Member& member : link.members) {
      // One multiplication would round differently from separate transfers.
      for (std::int32_t i = 0; i < member.times; ++i) {
        demand += cap_of(jobs_[member.slot]);
      }
    }
    const bool was_tight = link.tight;
    link.tight = demand > wiring_->capacity[static_cast<std::size_t>(id)];
    if (link.tight || was_tight) {
      mark_members_fresh(link);
    }
  }
  dirty_links_.clear();
}

void FluidRun::gather_neighbours() {
  for (std::size_t next = 0; next < fresh_.size();) {  // the list grows during the loop
    const Job& job = jobs_[fresh_[next++]];
    if (!job.draws) {
      continue;
    }
    for (const std::int32_t link : links_of(job)) {
      LinkState& state = links_[static_cast<std::size_t>(link)];
      if (state.tight && !state.gathered) {
        state.gathered = true;
        gathered_.push_back(link);
        mark_members_fresh(state);
      }
    }
  }
  for (const std::int32_t link : gathered_) {
    links_[static_cast<std::size_t>(link)].gathered = false;
  }
  gathered_.clear();
}

void FluidRun::set_speed(std::uint32_t slot, double speed, std::int64_t now, EventQueue& queue) {
  Job& job = jobs_[slot];
  if (job.speed == speed) {
    return;
  }
  if (job.speed > 0.0) {
    job.remaining = std::max(0.0, job.remaining - static_cast<double>(now - job.since) * job.speed);
  }
  job.speed = speed;
  job.since = now;
  job.end = -1;
  if (speed > 0.0) {
    job.end = now + std::llround(std::min(job.remaining / speed, static_cast<double>(FaultTable::too_late)));
    queue.push(job.end, job.kind == JobKind::kernel ? EventKind::end : EventKind::half_end,
               {.slot = slot, .lane = job.lane});
  }
}

}  // namespace commfuse
