// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/nccl_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "model/check.h"
#include "validate/cuda/lane_planner.h"
#include "validate/reference/collective.h"

namespace commfuse::validate {

namespace {

/// Returns the communicators that a program needs. They follow from the program's ops and not from a rank's commands,
/// because all ranks make the same communicators.
std::vector<NcclMembers> communicators_of(const Program& program) {
  std::set<NcclMembers> members;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::exchange) {
      members.insert({.lane = op.lane});
    } else if (op.kind == OpKind::collective) {
      const auto& shape = std::get<CollectiveShape>(program.shapes[op.shape]);
      const bool has_one_axis = program.mesh.axes.size() == 1;
      members.insert({.lane = op.lane, .axis = has_one_axis ? -1 : shape.axis});
    }
  }
  return {members.begin(), members.end()};
}

class NcclPlanner : private LanePlanner<NcclPlan> {
 public:
  NcclPlanner(const Program& program, std::span<const Command> commands) : LanePlanner(commands), program_(program) {
    plan_.communicators = communicators_of(program);
  }

  NcclPlan plan() {
    return planned([&](std::size_t i) { add(i); });
  }

 private:
  void add(std::size_t i) {
    const Command& command = commands_[i];
    NcclStep step{.lane = command.lane, .command = static_cast<std::int32_t>(i)};
    if (command.kind == OpKind::exchange) {
      step.kind = NcclStep::Kind::exchange;
      step.communicator = index_of({.lane = command.lane});
    } else if (command.kind == OpKind::collective) {
      step.kind = NcclStep::Kind::collective;
      const auto& shape = std::get<CollectiveShape>(program_.shapes[command.shape]);
      step.communicator = index_of({.lane = command.lane, .axis = program_.mesh.axes.size() == 1 ? -1 : shape.axis});
    }
    plan_.steps.push_back(step);
  }

  [[nodiscard]] std::size_t index_of(const NcclMembers& members) const {
    return static_cast<std::size_t>(std::ranges::find(plan_.communicators, members) - plan_.communicators.begin());
  }

  const Program& program_;
};

/// One queue per rank with its commands that communicate, in the order of issue. A queue advances when all ranks of its
/// first command have reached that command.
class Queues {
 public:
  explicit Queues(const Lowered& lowered) : program_(*lowered.program) {
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      commands_.push_back(commands_of(lowered, rank));
      next_.push_back(0);
      halves_.emplace_back();
      skip(rank);
    }
  }

  std::vector<std::string> findings() {
    while (step()) {
    }
    std::vector<std::string> sentences;
    for (std::size_t rank = 0; rank < commands_.size(); ++rank) {
      if (const Command* head = head_of(static_cast<Rank>(rank)); head != nullptr) {
        sentences.push_back(fmt::format("rank {} would wait forever at {}", rank, op_in_words(program_, head->op)));
      }
    }
    return sentences;
  }

 private:
  struct Halves {
    bool sent = false, received = false;
  };

  [[nodiscard]] const Command* head_of(Rank rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return next_[r] < commands_[r].size() ? &commands_[r][next_[r]] : nullptr;
  }
  /// Skips to the next command that communicates.
  void skip(Rank rank) {
    const auto r = static_cast<std::size_t>(rank);
    while (head_of(rank) != nullptr && head_of(rank)->kind != OpKind::exchange &&
           head_of(rank)->kind != OpKind::collective) {
      ++next_[r];
    }
  }
  void advance(Rank rank) {
    ++next_[static_cast<std::size_t>(rank)];
    halves_[static_cast<std::size_t>(rank)] = {};
    skip(rank);
  }
  [[nodiscard]] bool is_at(Rank rank, OpId op) const { return head_of(rank) != nullptr && head_of(rank)->op == op; }

  bool step() {
    bool moved = false;
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      const Command* head = head_of(rank);
      if (head != nullptr) {
        moved = (head->kind == OpKind::exchange ? exchange(rank, *head) : meet(*head)) || moved;
      }
    }
    return moved;
  }

  bool exchange(Rank rank, const Command& head) {
    Halves& current = halves_[static_cast<std::size_t>(rank)];
    bool moved = false;
    if (head.target >= 0 && !current.sent && is_at(head.target, head.target_op)) {
      current.sent = true;
      halves_[static_cast<std::size_t>(head.target)].received = true;
      moved = true;
    }
    if ((current.sent || head.target < 0) && (current.received || head.source < 0)) {
      advance(rank);
      moved = true;
    }
    return moved;
  }

  bool meet(const Command& head) {
    const std::vector<Rank> group = head.group;
    const OpId op = head.op;
    if (!std::ranges::all_of(group, [&](Rank member) { return is_at(member, op); })) {
      return false;
    }
    for (const Rank member : group) {
      advance(member);
    }
    return true;
  }

  const Program& program_;
  std::vector<std::vector<Command>> commands_;
  std::vector<std::size_t> next_;
  std::vector<Halves> halves_;
};

/// Counts the signals that each rank raises for each of the others, lane by lane.
class SignalCounter {
 public:
  SignalCounter(const Lowered& lowered, const HasRoom& has_room) : program_(*lowered.program), has_room_(has_room) {
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      commands_.push_back(commands_of(lowered, rank));
    }
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      for (const Command& command : commands_[static_cast<std::size_t>(rank)]) {
        raise(rank, command);
      }
    }
  }

  std::vector<PutSignals> signals_of(Rank rank) {
    std::vector<PutSignals> signals;
    for (const Command& command : commands_[static_cast<std::size_t>(rank)]) {
      PutSignals& current = signals.emplace_back();
      if (command.kind != OpKind::exchange) {
        continue;
      }
      current.says_ready = command.source >= 0 && waits_for_receiver(rank, command);
      if (command.target >= 0 && waits_for_receiver(command.target, command_of(command.target, command.target_op))) {
        current.awaits_ready = wait(command.lane, command.target, rank, {Half::ready, command.op});
      }
      if (command.source >= 0) {
        current.awaits_arrived = wait(command.lane, command.source, rank, {Half::arrived, command.op});
      }
    }
    return signals;
  }

 private:
  enum class Half : std::uint8_t { ready, arrived };
  /// The meaning of a signal, and the op of the rank that waits for it.
  using Meaning = std::pair<Half, OpId>;
  struct Route {
    std::int32_t lane = 0;
    Rank from = 0, to = 0;
    friend auto operator<=>(const Route&, const Route&) = default;
  };

  [[nodiscard]] const Command& command_of(Rank rank, OpId op) const {
    return *std::ranges::find(commands_[static_cast<std::size_t>(rank)], op, &Command::op);
  }
  [[nodiscard]] bool waits_for_receiver(Rank rank, const Command& command) const {
    const Protocol protocol = std::get<ExchangeShape>(program_.shapes[command.shape]).protocol;
    return !command.outputs.empty() && !(protocol == Protocol::push && has_room_(rank, command));
  }
  void raise(Rank rank, const Command& command) {
    if (command.kind != OpKind::exchange) {
      return;
    }
    if (command.source >= 0 && waits_for_receiver(rank, command)) {
      raised_[{command.lane, rank, command.source}].push_back({Half::ready, command.source_op});
    }
    if (command.target >= 0) {
      raised_[{command.lane, rank, command.target}].push_back({Half::arrived, command.target_op});
    }
  }
  int wait(std::int32_t lane, Rank from, Rank to, const Meaning& meaning) {
    const Route route{lane, from, to};
    const std::vector<Meaning>& raised = raised_.at(route);
    const int count = static_cast<int>(std::ranges::find(raised, meaning) - raised.begin()) + 1;
    check(count <= static_cast<int>(raised.size()), "the peer raises every signal that a rank waits for");
    int& waited = waited_[route];
    const int remaining = std::max(count - waited, 0);
    waited += remaining;
    return remaining;
  }

  const Program& program_;
  const HasRoom& has_room_;
  std::vector<std::vector<Command>> commands_;
  std::map<Route, std::vector<Meaning>> raised_;
  std::map<Route, int> waited_;
};

}  // namespace

std::vector<PutSignals> put_signals(const Lowered& lowered, Rank rank, const HasRoom& has_room) {
  return SignalCounter(lowered, has_room).signals_of(rank);
}

NcclPlan nccl_plan(const Program& program, std::span<const Command> commands) {
  return NcclPlanner(program, commands).plan();
}

int color_of(const Program& program, const NcclMembers& members, Rank rank) {
  if (members.axis < 0) {
    return 0;
  }
  const Coordinates coordinates = program.mesh.coordinates(rank);
  int color = 0;
  for (std::size_t axis = 0; axis < program.mesh.axes.size(); ++axis) {
    if (static_cast<std::int32_t>(axis) != members.axis) {
      color = color * program.mesh.axes[axis].extent + coordinates[axis];
    }
  }
  return color;
}

std::vector<std::string> nccl_findings(const Lowered& lowered) {
  const Program& program = *lowered.program;
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const auto* collective = std::get_if<CollectiveShape>(&program.shapes[program.ops[i].shape]);
    if (collective != nullptr && adds(collective->kind) && collective->wire == DType::fp8) {
      sentences.push_back(fmt::format("{} sums in fp8, which NCCL cannot do",
                                      op_in_words(program, OpId{static_cast<std::int32_t>(i)})));
    }
  }
  const std::vector<std::string> waits = Queues(lowered).findings();
  sentences.insert(sentences.end(), waits.begin(), waits.end());
  return sentences;
}

}  // namespace commfuse::validate
