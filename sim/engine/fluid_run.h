// SPDX-License-Identifier: Apache-2.0
// The work of a run whose speed changes: kernels beside communication, transfers that share links.
//
// Progress counts in time: what is left of an op is how long it would still take alone, and its speed is 1 when it is
// alone. So an op that nobody disturbs ends at its start plus its price, to the picosecond.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/fluid.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/faults.h"
#include "sim/engine/max_min.h"

namespace commfuse {

/// One job a slot at most: the kernel at the head of the lane, or the send half of its exchange. Speeds change only in
/// settle(), after all that happens at one instant, so that the order of simultaneous events does not matter.
class FluidRun {
 public:
  struct Kernel {
    std::uint32_t slot = 0;
    std::uint16_t lane = 0;
    Rank rank = 0;
    std::uint32_t op = 0;
    std::int64_t time = 0;  // alone
  };
  struct Transfer {
    std::uint32_t slot = 0;  // of the sender
    std::uint16_t lane = 0;
    std::uint32_t op = 0;
    RankPair link;
    std::int64_t time = 0;  // alone, latency included
  };

  void start(const Fluid& fluid, const FaultTable& faults, std::uint32_t lanes, std::size_t slots);

  void begin(const Kernel& kernel, std::int64_t now, EventQueue& queue);
  void begin(const Transfer& transfer, std::int64_t now, EventQueue& queue);
  /// Communication that holds SMs is resident on the rank, from when it is posted to its end: it waits for its peers on
  /// the SMs.
  void resident(Rank rank, OpKind kind, int change);

  /// Whether the job of the slot is over. Otherwise the event is out of date, or a part of the job is over and the next
  /// one begins.
  bool over(std::uint32_t slot, std::int64_t now);
  /// The link of a transfer may have gone down or come up.
  void wake(std::uint32_t slot, std::int64_t now, EventQueue& queue);
  /// Sets speeds, and pushes where jobs end at these.
  void settle(std::int64_t now, EventQueue& queue);
  /// Every kernel and transfer that began is over and no link is in use.
  [[nodiscard]] bool all_over() const;

 private:
  enum class JobKind : std::uint8_t { none, kernel, transfer };
  struct Job {
    double left = 0.0;  // of the stage, at `since`; picoseconds alone
    double speed = -1.0;
    std::int64_t since = 0;
    std::int64_t end = -1;           // of the stage, at this speed; -1: not known
    std::int64_t latency = 0;        // of a transfer
    std::int64_t drain = 0;          // of its bytes
    double slowness = 1.0;           // of its link
    const WirePath* path = nullptr;  // null: holds no wires
    RankPair link;
    std::uint32_t op = 0;
    std::int32_t stage = -1;  // -1: latency
    std::uint16_t lane = 0;
    JobKind kind = JobKind::none;
    bool draws = false;  // its links know of it
    bool fresh = false;  // is on the list of those to look at
  };
  struct Member {
    std::uint32_t slot = 0;
    std::int32_t times = 1;  // its transfer stands for so many on the link
    friend auto operator<=>(const Member&, const Member&) = default;
  };
  /// Who is on a link.
  struct LinkState {
    std::vector<Member> members;
    bool tight = false;  // all together want more than it carries
    bool dirty = false;
    bool gathered = false;  // its transfers are on the list of those to look at
  };
  struct RankState {
    std::array<std::int32_t, 2> resident{};  // exchanges, collectives
    bool dirty = false;
  };

  void look_at(std::uint32_t slot);
  void look_at(const LinkState& link);
  /// Goes on to the next stage that takes time, from `stage`; false when there is none.
  bool open_stage(Job& job, std::int32_t stage, std::int64_t now);
  [[nodiscard]] double length_of(const Job& job, std::int32_t stage) const;
  void draw(std::uint32_t slot);
  void leave(std::uint32_t slot);
  void touch(std::int32_t link);
  [[nodiscard]] const WireStage& stage_of(const Job& job, std::int32_t stage) const {
    return wiring_->stages[job.path->first_stage + static_cast<std::uint32_t>(stage)];
  }
  [[nodiscard]] std::span<const std::int32_t> links_of(const Job& job) const {
    return wiring_->links_of(stage_of(job, job.stage));
  }
  [[nodiscard]] Flow flow_of(const Job& job) const {
    return {cap_of(job), links_of(job), wiring_->times_of(stage_of(job, job.stage))};
  }
  [[nodiscard]] double cap_of(const Job& job) const { return stage_of(job, job.stage).cap / job.slowness; }
  void settle_kernels(std::int64_t now, EventQueue& queue);
  void settle_transfers(std::int64_t now, EventQueue& queue);
  void refresh_links();
  void gather_neighbours();
  void set_speed(std::uint32_t slot, double speed, std::int64_t now, EventQueue& queue);

  const Fluid* fluid_ = nullptr;
  const Wiring* wiring_ = nullptr;
  const FaultTable* faults_ = nullptr;
  std::uint32_t lanes_ = 0;
  std::vector<Job> jobs_;         // by slot
  std::vector<LinkState> links_;  // by link
  std::vector<RankState> ranks_;
  std::vector<std::uint32_t> fresh_;  // slots of transfers to look at
  std::vector<std::int32_t> dirty_links_;
  std::vector<std::int32_t> gathered_;  // links
  std::vector<Rank> dirty_ranks_;
  std::vector<std::uint32_t> drawing_;  // of those that are looked at
  std::vector<Flow> flows_;
  MaxMin max_min_;
};

}  // namespace commfuse
