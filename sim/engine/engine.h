// SPDX-License-Identifier: Apache-2.0
// Plays a program in simulated time: events, in-order lanes, meetings.
//
// Op n of a rank is issued after the issue costs of ops 0..n. It is posted once it is issued, what it waits for has
// ended and its lane is free; it holds the lane to its end. Each half of an exchange starts when both its ends are
// posted; the exchange ends with both halves. A push starts when its sender is posted, and its receiver waits for what
// arrives; a pull starts when both are, and its sender has done its part once it is posted. A collective starts at the
// last arrival and ends on all together.
//
// Lanes are in order, so a run keeps no state per op: of every lane of every rank only which op is at its head and how
// far that is. An op has ended when the head stands behind it.
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
  /// Links are shared and kernels slowed as it turns out during the run (docs/decisions/0010). Null: every op takes
  /// what its costs say. Of the same program and machine; the costs of the run are its costs, or bounds made of them.
  const Fluid* fluid = nullptr;
  /// Null: none.
  const Faults* faults = nullptr;
  /// Only the first ranks are simulated, each for all that have the same id modulo this number; the recorder hears of
  /// no others. Requires that all ranks run every op, without faults, at costs, speeds and wires that repeat so
  /// (distinct_ranks(), folded_wiring()). 0: all ranks.
  Rank first_ranks = 0;
  /// Seed by which simultaneous events are shuffled. Results do not depend on it; tests say so.
  std::optional<std::uint64_t> shuffle_ties{};
};

/// Keeps its memory from run to run; every run is otherwise a pure function of its arguments. One a thread.
class Engine {
 public:
  /// Requires a plan whose program passed check_program and costs of that program. Same input, same record. Throws
  /// ConfigError on faults that cannot be, where an op never ends because a link stays down, and for a run of more than
  /// FaultTable::longest_run.
  void run(const Plan& plan, const Costs& costs, Recorder& recorder, const EngineOptions& options = {});

 private:
  enum class Phase : std::uint8_t { waiting, issuing, posted };
  /// A lane of a rank: slot rank * lanes + lane.
  struct Slot {
    std::int64_t start = -1;  // of the op at the head; -1: not started
    std::uint32_t head = 0;   // its place in the plan
    Rank rank = 0;
    std::uint16_t lane = 0;
    Phase phase = Phase::waiting;
    std::int8_t halves = 0;  // of an exchange, not ended
    bool sent = false;       // of a push: its send half has ended
  };

  void fold(const EngineOptions& options);
  void prepare();
  void play();
  void play_fluid();
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
  /// The slot of the rank whose coordinate on the op's axis is `shift` further, on the same lane.
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
  FoldedMesh mesh_;  // of the ranks that are simulated
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
