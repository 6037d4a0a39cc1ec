// SPDX-License-Identifier: Apache-2.0
// Simulates a program event by event: in-order lanes, exchanges and collectives.
//
// Op n of a rank is issued after the issue costs of ops 0..n. It is posted once it is issued, its dependencies have
// ended and its lane is free; it holds the lane until it ends. Each half of an exchange starts when both its ends are
// posted; the exchange ends when both halves have ended. A push starts when its sender is posted, and its receiver
// waits for the data; a pull starts when both ends are posted, and its sender is done once it is posted. A collective
// starts at the last arrival and ends on all ranks together.
//
// Lanes are in order, so a run keeps no state per op: for every lane of every rank it stores only which op is at the
// head and how far that op is. An op has ended once the head is past it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cost/costs.h"
#include "model/program/recorder.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/faults.h"
#include "sim/engine/fluid_run.h"
#include "sim/engine/plan.h"

namespace commfuse {

struct EngineOptions {
  /// Makes links share bandwidth, and slows kernels down by the ops that overlap with them during the run
  /// (docs/decisions/0010). Null: every op takes the time in its costs. Must belong to the program and machine of the
  /// run. The costs of the run must be the costs of the Fluid, or bounds derived from them.
  const Fluid* fluid = nullptr;
  /// Faults of the run; null: none.
  const Faults* faults = nullptr;
  /// Number of simulated ranks, each of which represents all ranks with the same id modulo this number; the recorder
  /// receives only these. Requires that all ranks run every op, without faults, and that costs, speeds and wires repeat
  /// with this period (distinct_ranks(), folded_wiring()). 0: all ranks.
  Rank first_ranks = 0;
  /// Seed for shuffling simultaneous events. Results do not depend on it, which tests check.
  std::optional<std::uint64_t> shuffle_ties{};
};

/// Reuses its memory in later runs; every run is otherwise a pure function of its arguments. Use one engine per thread.
class Engine {
 public:
  /// Simulates one run and reports it to the recorder; the same input gives the same record. Requires the program of
  /// `plan` to have passed check_program(), and `costs` to be the costs of that program. Throws ConfigError for
  /// impossible faults, for an op that never ends because a link stays down, and for a run longer than
  /// FaultTable::longest_run.
  void run(const Plan& plan, const Costs& costs, Recorder& recorder, const EngineOptions& options = {});

 private:
  enum class Phase : std::uint8_t { waiting, issuing, posted };
  /// State of one lane of one rank, at index rank * lanes + lane.
  struct Slot {
    std::int64_t start = -1;  // start of the op at the head; -1: not started
    std::uint32_t head = 0;   // place in the plan of the op at the head
    Rank rank = 0;
    std::uint16_t lane = 0;
    Phase phase = Phase::waiting;
    std::int8_t halves = 0;  // number of halves of an exchange that have not ended
    bool sent = false;       // push only: the send half has ended
  };

  void fold(const EngineOptions& options);
  void prepare();
  void run_static();
  void run_fluid();
  void add_up_issue_costs();
  void handle(const TimedEvent& event);
  void try_head(std::uint32_t slot);
  void post(std::uint32_t slot);
  void start_compute(std::uint32_t slot, OpId op);
  void post_exchange(std::uint32_t slot, const PlannedOp& exchange);
  void post_push(std::uint32_t slot, const PlannedOp& push);
  void post_pull(std::uint32_t slot, const PlannedOp& pull);
  void start_half(std::uint32_t mover, std::uint32_t other);
  void end_half(std::uint32_t mover);
  void end_own_half(std::uint32_t slot);
  void arrive(std::uint32_t slot, const PlannedOp& collective);
  void end_collective(std::uint32_t slot);
  void end(std::uint32_t slot);
  [[noreturn]] static void refuse_too_long(Rank rank);
  void hold_sms(std::uint32_t slot, const PlannedOp& op, int change);
  void require_all_ended() const;
  void require_no_lost_link(std::uint32_t slot) const;
  [[nodiscard]] std::string stuck_in_words(std::uint32_t slot) const;

  [[nodiscard]] const RankPlan& plan_of(Rank rank) const {
    return kinds_[plan_->kind_of_rank[static_cast<std::size_t>(rank)]];
  }
  [[nodiscard]] const PlannedOp& head_of(const Slot& slot) const { return plan_of(slot.rank).ops[slot.head]; }
  /// Returns the slot on the same lane of the rank whose coordinate on the op's axis is `shift` ahead.
  [[nodiscard]] std::uint32_t shifted(std::uint32_t slot, int axis, std::int32_t shift) const;
  [[nodiscard]] std::uint32_t target_of(std::uint32_t slot, const PlannedOp& exchange) const {
    return shifted(slot, exchange.axis, exchange.shift);
  }
  [[nodiscard]] std::uint32_t source_of(std::uint32_t slot, const PlannedOp& exchange) const {
    return shifted(slot, exchange.axis, -exchange.shift);
  }
  [[nodiscard]] bool has_posted(std::uint32_t slot, std::int32_t op) const;
  [[nodiscard]] bool has_ended(std::uint32_t slot, std::int32_t op) const;

  const Plan* plan_ = nullptr;
  const RankPlan* kinds_ = nullptr;
  const Program* program_ = nullptr;
  const Costs* costs_ = nullptr;
  Recorder* recorder_ = nullptr;
  std::uint32_t lanes_ = 0;
  FoldedMesh mesh_;  // mesh of the simulated ranks
  std::int64_t now_ = 0;
  EventQueue queue_;
  FaultTable faults_;
  FluidRun fluid_;
  bool fluid_on_ = false;
  std::vector<Slot> slots_;
  std::vector<std::int64_t> issued_;    // by kind of rank and op
  std::vector<std::int32_t> arrivals_;  // by axis and slot of the group's first member
};

}  // namespace commfuse
