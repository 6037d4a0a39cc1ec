// SPDX-License-Identifier: Apache-2.0
// A priced schedule in the form of other simulators: for every rank a graph of calculations, sends and receives. GOAL
// and Chakra files are both written from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cost/costs.h"
#include "model/program/lower.h"
#include "model/program/sizes.h"

namespace commfuse::reports {

/// A schedule, and the sizes and costs of its ops at one point. Requires a program that passed check_program, and sizes
/// and costs of that program. Holds only references, which must outlive it.
struct ExportInput {
  const Lowered& lowered;
  const Sizes& sizes;
  const Costs& costs;

  [[nodiscard]] const Program& program() const { return *lowered.program; }
};

/// The dependencies of a message.
enum class MessageOrder : std::uint8_t {
  lane,  // by lane, as in our engine: an exchange starts with both halves when the op before it on its lane has ended
  data,  // by data: each half waits for the tasks whose data or memory it needs; lanes order only calculations
};

struct Task {
  enum class Kind : std::uint8_t {
    calculation,  // an op that does not communicate; or the host issuing an op
    send,
    receive,
    collective,
  };
  Kind kind = Kind::calculation;
  OpId op{};
  std::int32_t step = -1;           // step of a collective that is spelled out in messages
  bool host = false;                // the host issues the op
  Duration time{};                  // calculation
  Rank peer = -1;                   // send, receive
  Bytes bytes;                      // send, receive: size of the message; collective: this rank's input
  std::int64_t tag = 0;             // send, receive: equal at both ends, and unique between these two ranks
  std::vector<std::int32_t> after;  // earlier tasks of this rank that end before it starts; ascending
};

struct TaskOptions {
  MessageOrder messages = MessageOrder::lane;
  /// Replaces collectives by the messages of a ring, and an all-to-all by the messages of its shifts, for readers that
  /// do not know collectives. n ranks take n - 1 consecutive steps of 1/n of the data each, an all-reduce twice as
  /// many.
  bool spell_out_collectives = false;
};

/// Returns the tasks of one rank, in issue order. If issuing has a cost, the host is a chain of calculations, each
/// before the op that it issues. An op that moves nothing (to itself, or in a group of one rank) is a calculation.
std::vector<Task> tasks_of(const ExportInput& input, Rank rank, const TaskOptions& options);

/// Returns a task's name, unique in its rank, consisting of letters, digits and _: "op7", "op7_send", "op7_receive_2",
/// "op7_issue".
std::string label_of(const Task& task);

/// Returns the index of the task's lane in Program::lanes; the host's lane follows the last.
std::size_t lane_of(const Program& program, const Task& task);

}  // namespace commfuse::reports
