// SPDX-License-Identifier: Apache-2.0
// Plays a program in simulated time: events, in-order lanes, rendezvous.
//
// Op n of a rank is issued after the issue costs of ops 0..n. It is posted once it is issued, what it waits for has
// ended and its lane is free; it holds the lane to its end. Each half of an exchange starts when both its ends are
// posted; the exchange ends with both halves. A collective starts at the last arrival and ends on all together.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/costs.h"
#include "model/record/recorder.h"
#include "sim/engine/plan.h"

namespace commfuse {

/// Keeps its memory from run to run; every run is otherwise a pure function of its arguments. One a thread.
class Engine {
 public:
  /// Requires a plan whose program passed check_program and costs of that program. Same input, same record.
  void run(const Plan& plan, const Costs& costs, Recorder& recorder);

 private:
  enum class EventKind : std::uint8_t { post, end, half_end, collective_end };
  struct Event {
    std::int64_t when;
    std::uint32_t sequence;  // order of scheduling breaks ties: no pointer or hash ever does
    std::uint32_t instance;  // rank * ops + op
    EventKind kind;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
    }
  };
  struct State {
    std::int64_t start = -1;   // -1: not started
    std::int32_t pending = 0;  // dependencies that have not ended
    std::int8_t halves = 0;    // of an exchange, not ended
    bool posted = false;
  };

  void prepare();
  void schedule(std::int64_t when, EventKind kind, std::uint32_t instance);
  void handle(const Event& event);
  void become_ready(std::uint32_t instance);
  void post(std::uint32_t instance);
  void post_exchange(std::uint32_t instance, const ExchangeShape& exchange);
  void start_half(std::uint32_t sender);
  void end_half(std::uint32_t sender);
  void arrive(std::uint32_t instance, const CollectiveShape& collective);
  void end_collective(std::uint32_t instance);
  void end(std::uint32_t instance);

  [[nodiscard]] std::uint32_t instance(Rank rank, std::size_t op) const {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(rank) * ops_ + op);
  }
  [[nodiscard]] Rank rank_of(std::uint32_t instance) const { return static_cast<Rank>(instance / ops_); }
  [[nodiscard]] std::size_t op_of(std::uint32_t instance) const { return instance % ops_; }
  /// The instance whose receive half meets the send half of `sender`.
  [[nodiscard]] std::uint32_t receiver_of(std::uint32_t sender) const;
  [[nodiscard]] std::uint32_t sender_of(std::uint32_t receiver) const;

  const Plan* plan_ = nullptr;
  const Program* program_ = nullptr;
  const Costs* costs_ = nullptr;
  Recorder* recorder_ = nullptr;
  std::size_t ops_ = 0;
  std::int64_t now_ = 0;
  std::uint32_t scheduled_ = 0;
  std::size_t ended_ = 0;
  std::vector<Event> queue_;            // a heap
  std::vector<State> states_;           // by instance
  std::vector<std::int64_t> issued_;    // by op, where all ranks run all ops; else by instance
  std::vector<std::int32_t> arrivals_;  // by instance of the group's first member
};

}  // namespace commfuse
