// SPDX-License-Identifier: Apache-2.0
#include "model/program_text/step_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/program/lower.h"
#include "model/program/words.h"
#include "model/proof/cells.h"
#include "model/proof/contents.h"
#include "model/proof/deadlock.h"
#include "model/proof/sums.h"
#include "model/text/counted.h"

namespace commfuse {

namespace {

/// For each op on each rank, the step in which it begins.
class Steps {
 public:
  Steps(const Program& program, const std::vector<Event>& events) : program_(program) {
    const auto ranks = static_cast<std::size_t>(program.mesh.ranks());
    begin_.assign(ranks * program.ops.size(), 0);
    end_.assign(ranks * program.ops.size(), 0);
    lane_free_.assign(ranks * program.lanes.size(), 0);
    for (const Event& event : events) {
      apply(event);
    }
  }

  [[nodiscard]] int begin(Rank rank, OpId op) const { return begin_[place(rank, op)]; }

 private:
  [[nodiscard]] std::size_t place(Rank rank, OpId op) const {
    return static_cast<std::size_t>(rank) * program_.ops.size() + position(op);
  }
  int& lane_free(Rank rank, OpId op) {
    return lane_free_[static_cast<std::size_t>(rank) * program_.lanes.size() + program_.ops[position(op)].lane];
  }

  /// Returns the earliest step in which the op's waits and lane let it begin.
  int posted(Rank rank, OpId op) {
    int step = std::max(begin_[place(rank, op)], lane_free(rank, op));
    for (const OpId wait : program_.waits_of(program_.ops[position(op)])) {
      step = std::max(step, end_[place(rank, wait)]);
    }
    return step;
  }
  void run(Rank rank, OpId op, int begin, int steps) {
    begin_[place(rank, op)] = begin;
    end_[place(rank, op)] = begin + steps;
  }
  void leave_lane(Rank rank, OpId op) { lane_free(rank, op) = std::max(lane_free(rank, op), end_[place(rank, op)]); }

  void apply(const Event& event) {
    if (event.kind == Event::Kind::computed) {
      const bool local = program_.ops[position(event.op)].purpose == Purpose::local;
      run(event.rank, event.op, posted(event.rank, event.op), local ? 0 : 1);
      leave_lane(event.rank, event.op);
    } else if (event.kind == Event::Kind::collected) {
      collect(event);
    } else {
      send(event);
    }
  }

  /// Called twice for an op with two halves; the later half sets its step.
  void send(const Event& event) {
    const int step = std::max(first_posted(event.rank, event.op), first_posted(event.target, event.target_op));
    for (const auto& [rank, op] : {std::pair(event.rank, event.op), std::pair(event.target, event.target_op)}) {
      run(rank, op, std::max(step, begin_[place(rank, op)]), event.kind == Event::Kind::credited ? 0 : 1);
      leave_lane(rank, op);
    }
  }
  int first_posted(Rank rank, OpId op) {
    const bool half_done = end_[place(rank, op)] > 0;
    return half_done ? begin_[place(rank, op)] : posted(rank, op);
  }

  void collect(const Event& event) {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[program_.ops[position(event.op)].shape]);
    const std::int32_t extent = program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
    int step = 0;
    for (std::int32_t i = 0; i < extent; ++i) {
      step = std::max(step, posted(program_.mesh.member(event.rank, shape.axis, i), event.op));
    }
    for (std::int32_t i = 0; i < extent; ++i) {
      const Rank member = program_.mesh.member(event.rank, shape.axis, i);
      run(member, event.op, step, 1);
      leave_lane(member, event.op);
    }
  }

  const Program& program_;
  std::vector<int> begin_, end_;  // by rank and op
  std::vector<int> lane_free_;    // by rank and lane
};

class Wording {
 public:
  Wording(const Program& program, const Sums& sums) : program_(program), sums_(sums) {}

  [[nodiscard]] std::string of(const Command& command, const OpValues& values) const {
    switch (command.kind) {
      case OpKind::gemm: return gemm(command, values);
      case OpKind::elementwise: return elementwise(command, values);
      case OpKind::exchange: return exchange(command, values);
      case OpKind::collective: return collective(command, values);
      case OpKind::attention: return fmt::format("compute {}", list(values.output));
    }
    return {};
  }

 private:
  [[nodiscard]] std::string list(const CellValues& values) const {
    std::string text;
    for (const CellValue& value : values) {
      text += (text.empty() ? "" : ", ") + in_words(program_, sums_, value);
    }
    return text;
  }

  [[nodiscard]] std::string gemm(const Command& command, const OpValues& values) const {
    if (values.inputs[0].size() > 1 || values.inputs[1].size() > 1) {
      return fmt::format("compute {}", list(values.output));
    }
    const auto& shape = std::get<GemmShape>(program_.shapes[command.shape]);
    return fmt::format("compute {} {} {}{} * {}{}", list(values.output), shape.accumulate ? "+=" : "=",
                       list(values.inputs[0]), shape.transpose_a ? "^T" : "", list(values.inputs[1]),
                       shape.transpose_b ? "^T" : "");
  }

  [[nodiscard]] std::string elementwise(const Command& command, const OpValues& values) const {
    const auto& shape = std::get<ElementwiseShape>(program_.shapes[command.shape]);
    std::string from;
    for (const CellValues& input : values.inputs) {
      from += (from.empty() ? "" : " + ") + list(input);
    }
    const std::string result = list(values.output) + (from.empty() ? "" : " = " + from);
    return fmt::format("{} {}", words::word(words::functions, shape.function), result);
  }

  /// Returns the verbs for the sender and for the receiver.
  static std::pair<const char*, const char*> verbs(Protocol protocol) {
    switch (protocol) {
      case Protocol::rendezvous: return {"send", "receive"};
      case Protocol::push: return {"push", "wait for"};
      case Protocol::pull: return {"offer", "pull"};
    }
    return {"send", "receive"};
  }

  [[nodiscard]] std::string exchange(const Command& command, const OpValues& values) const {
    const auto& shape = std::get<ExchangeShape>(program_.shapes[command.shape]);
    const auto carried = [&](const CellValues& carried_values) {
      return is_credit(shape) ? std::string("a credit") : list(carried_values);
    };
    const auto [give, take] = verbs(shape.protocol);
    std::string text;
    if (command.target >= 0) {
      text = fmt::format("{} {} to {}", give, carried(command.inputs.empty() ? CellValues{} : values.inputs.front()),
                         command.target);
    }
    if (command.source >= 0) {
      text += fmt::format("{}{} {} from {}", text.empty() ? "" : "; ", take, carried(values.output), command.source);
    }
    return text;
  }

  [[nodiscard]] std::string collective(const Command& command, const OpValues& values) const {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[command.shape]);
    return fmt::format("{} {} into {}", words::word(words::collectives, shape.kind), list(values.inputs.front()),
                       list(values.output));
  }

  const Program& program_;
  const Sums& sums_;
};

}  // namespace

std::string step_table(const Program& program) {
  const Lowered lowered = lower(std::make_shared<const Program>(program));
  Findings findings;
  Sums sums;
  Trace trace;
  const std::vector<Event> events = run_abstractly(program, lowered.matching, findings);
  check_contents(program, CellMap(program), events, sums, findings, &trace);
  check(findings.empty(), "a step table needs a program that passed check_program");

  const Steps steps(program, events);
  const Wording wording(program, sums);
  std::map<std::pair<int, Rank>, std::string> lines;
  const Rank ranks = program.mesh.ranks();
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (const Command& command : commands_of(lowered, rank)) {
      const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[command.shape]);
      const bool takes_no_step = command.purpose == Purpose::local || (exchange != nullptr && is_credit(*exchange));
      std::string& line = lines[{std::max(0, steps.begin(rank, command.op) - (takes_no_step ? 1 : 0)), rank}];
      line += (line.empty() ? "" : "; ") + wording.of(command, trace.at(0, rank, command.op));
    }
  }
  std::string table = fmt::format("{}, {}\n", program.name, counted(ranks, "rank"));
  int step = -1;
  for (const auto& [step_and_rank, line] : lines) {
    if (step_and_rank.first != step) {
      step = step_and_rank.first;
      table += fmt::format("\nstep {}\n", step);
    }
    table += fmt::format("  rank {}: {}\n", step_and_rank.second, line);
  }
  return table;
}

}  // namespace commfuse
