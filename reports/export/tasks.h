// SPDX-License-Identifier: Apache-2.0
// A priced schedule as other simulators see one: for every rank a graph of calculations, sends and receives. GOAL and
// Chakra are both written from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cost/costs.h"
#include "model/program/lower.h"
#include "model/program/sizes.h"

namespace commfuse::reports {

/// A schedule, and what its ops weigh and cost at one point. Requires a program that passed check_program, and sizes
/// and costs of that program. Only refers to them: they must outlive it.
struct ExportInput {
  const Lowered& lowered;
  const Sizes& sizes;
  const Costs& costs;

  [[nodiscard]] const Program& program() const { return *lowered.program; }
};

/// What a message waits for.
enum class MessageOrder : std::uint8_t {
  lane,  // as here: an exchange starts when the op before it on its lane has ended, an exchange with both its halves
  data,  // each half waits for those whose data or memory it needs; lanes keep only calculations in order
};

struct Task {
  enum class Kind : std::uint8_t {
    calculation,  // an op that is no communication; or the host issuing one
    send,
    receive,
    collective,
  };
  Kind kind = Kind::calculation;
  OpId op{};
  std::int32_t step = -1;           // of a collective that is spelled out in messages
  bool host = false;                // the host issues the op
  Duration time{};                  // calculation
  Rank peer = -1;                   // send, receive
  Bytes bytes;                      // send, receive: of the message; collective: what this rank puts in
  std::int64_t tag = 0;             // send, receive: equal at both ends, and of no other message between these two
  std::vector<std::int32_t> after;  // earlier tasks of this rank that end before it starts; ascending
};

struct TaskOptions {
  MessageOrder messages = MessageOrder::lane;
  /// Collectives become messages, for readers that know none: those of their ring, for an all-to-all those of its
  /// shifts. n ranks take n - 1 steps of 1/n of the data each, an all-reduce twice as many; step after step.
  bool spell_out_collectives = false;
};

/// The tasks of one rank, in issue order. Where issuing costs something the host is there too, as a chain of
/// calculations, each before the op it issues. What moves nothing (to itself, or among one rank) is a calculation.
std::vector<Task> tasks_of(const ExportInput& input, Rank rank, const TaskOptions& options);

/// "op7", "op7_send", "op7_receive_2", "op7_issue": one name a task of a rank, of letters, digits and _ only.
std::string label_of(const Task& task);

/// The place of its lane in Program::lanes; the host's is behind them.
std::size_t lane_of(const Program& program, const Task& task);

}  // namespace commfuse::reports
