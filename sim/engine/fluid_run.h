// SPDX-License-Identifier: Apache-2.0
// The jobs whose speed changes during a run: kernels that overlap with communication, and transfers that share links.
//
// Progress is measured in time: the remaining work of a job is the time that it would still take undisturbed, at speed
// 1. So an undisturbed op ends at its start plus its price, to the picosecond.
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

/// Runs at most one job per slot: the kernel at the head of the lane, or the half that its exchange moves (the receive
/// half of a pull, otherwise the send half). Speeds change only in settle(), after everything that happens at one
/// instant, so that the order of simultaneous events does not matter.
class FluidRun {
 public:
  struct Kernel {
    std::uint32_t slot = 0;
    std::uint16_t lane = 0;
    Rank rank = 0;
    std::uint32_t op = 0;
    std::int64_t time = 0;  // time that it takes undisturbed
  };
  struct Transfer {
    std::uint32_t slot = 0;  // slot of the sender; for a pull, of the receiver
    std::uint16_t lane = 0;
    std::uint32_t op = 0;
    RankPair link;
    std::int64_t time = 0;  // time that it takes undisturbed, including latency
  };

  void start(const Fluid& fluid, const FaultTable& faults, std::uint32_t lanes, std::size_t slots);

  void begin(const Kernel& kernel, std::int64_t now, EventQueue& queue);
  void begin(const Transfer& transfer, std::int64_t now, EventQueue& queue);
  /// Counts the communication ops that hold SMs of the rank. An op counts from its posting to its end, because it
  /// occupies the SMs even while it waits for its peers.
  void add_resident(Rank rank, OpKind kind, int change);

  /// Finishes the stage of the slot's job if it ends now; otherwise the event is out of date. Begins the next stage, or
  /// returns true if the job is over.
  bool finish_stage(std::uint32_t slot, std::int64_t now);
  /// Called when the link of a transfer may have gone down or come up.
  void wake(std::uint32_t slot, std::int64_t now, EventQueue& queue);
  /// Sets the speeds, and pushes the events at which the stages of jobs end at these speeds.
  void settle(std::int64_t now, EventQueue& queue);
  /// Returns whether every kernel and transfer that began is over and no link is in use.
  [[nodiscard]] bool all_over() const;

 private:
  enum class JobKind : std::uint8_t { none, kernel, transfer };
  struct Job {
    double remaining = 0.0;  // remaining time of the stage at `since`, at speed 1, in picoseconds
    double speed = -1.0;
    std::int64_t since = 0;
    std::int64_t end = -1;           // end of the stage at this speed; -1: not known
    std::int64_t latency = 0;        // latency of a transfer
    std::int64_t drain = 0;          // time to move a transfer's bytes
    double slowness = 1.0;           // factor of a transfer's link
    const WirePath* path = nullptr;  // null: holds no wires
    RankPair link;
    std::uint32_t op = 0;
    std::int32_t stage = -1;  // -1: latency
    std::uint16_t lane = 0;
    JobKind kind = JobKind::none;
    bool draws = false;  // is a member of its links
    bool fresh = false;  // is listed in fresh_
  };
  struct Member {
    std::uint32_t slot = 0;
    std::int32_t times = 1;  // number of the link's transfers that this transfer represents
    friend auto operator<=>(const Member&, const Member&) = default;
  };
  /// The transfers on a link.
  struct LinkState {
    std::vector<Member> members;
    bool tight = false;  // its transfers together could use more than its capacity
    bool dirty = false;
    bool gathered = false;  // its transfers are listed in fresh_
  };
  struct RankState {
    std::array<std::int32_t, 2> resident{};  // exchanges, collectives
    bool dirty = false;
  };

  void mark_fresh(std::uint32_t slot);
  void mark_members_fresh(const LinkState& link);
  /// Opens the next stage that takes time, starting at `stage`. Returns false if no stage is left.
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
  std::vector<std::uint32_t> fresh_;  // slots of transfers whose speeds settle() sets
  std::vector<std::int32_t> dirty_links_;
  std::vector<std::int32_t> gathered_;  // links
  std::vector<Rank> dirty_ranks_;
  std::vector<std::uint32_t> drawing_;  // the transfers under consideration
  std::vector<Flow> flows_;
  MaxMin max_min_;
};

}  // namespace commfuse
