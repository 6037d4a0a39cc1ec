// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/peer_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/program/recorder.h"
#include "validate/cuda/lane_planner.h"
#include "validate/reference/collective.h"

namespace commfuse::validate {

namespace {

/// Returns the dtype of an operand's first buffer; peer_findings() refuses transfers of several dtypes.
DType dtype_of(const Program& program, Slice operand) {
  return program.buffers[position(program.regions_of(operand).front().buffer)].dtype;
}

bool has_several_dtypes(const Program& program, Slice operand) {
  return std::ranges::any_of(program.regions_of(operand), [&](const Region& region) {
    return program.buffers[position(region.buffer)].dtype != dtype_of(program, operand);
  });
}

bool communicates(const Op& op) { return op.kind == OpKind::exchange || op.kind == OpKind::collective; }

class PeerPlanner : private LanePlanner<PeerPlan> {
 public:
  PeerPlanner(const Program& program, const PeerFlags& flags, Rank rank, std::span<const Command> commands)
      : LanePlanner(commands), program_(program), flags_(flags), rank_(rank) {}

  PeerPlan plan() {
    return planned([&](std::size_t i) { add(i); });
  }

 private:
  void add(std::size_t i) {
    const Command& command = commands_[i];
    step_ = {.lane = command.lane, .command = static_cast<std::int32_t>(i)};
    switch (command.kind) {
      case OpKind::exchange: exchange(command); break;
      case OpKind::collective: collective(command); break;
      default: put(PeerStep::Kind::compute);
    }
  }

  void put(PeerStep::Kind kind, Rank peer = -1, std::int64_t flag = -1) {
    PeerStep step = step_;
    step.kind = kind;
    step.peer = peer;
    step.flag = flag;
    plan_.steps.push_back(step);
  }

  /// The receiver's `ready` signal comes first and the wait for its data last, so two ranks that send to each other do
  /// not deadlock.
  void exchange(const Command& command) {
    const Op& op = program_.ops[position(command.op)];
    const Protocol protocol = std::get<ExchangeShape>(program_.shapes[command.shape]).protocol;
    if (command.source >= 0 && protocol == Protocol::rendezvous) {
      put(PeerStep::Kind::signal, command.source, flags_.ready(command.source_op));
    }
    if (command.target >= 0) {
      send(command, op, protocol);
    }
    if (command.source >= 0) {
      put(PeerStep::Kind::await, command.source, flags_.arrived(command.op));
      if (!command.outputs.empty()) {
        if (protocol == Protocol::pull) {
          put(PeerStep::Kind::fetch, command.source);
        }
        if (unpacks(program_, op)) {
          put(PeerStep::Kind::unpack);
        }
      }
    }
  }

  void send(const Command& command, const Op& op, Protocol protocol) {
    if (protocol != Protocol::pull) {
      if (!command.inputs.empty() && packs(program_, op)) {
        put(PeerStep::Kind::pack);
      }
      if (protocol == Protocol::rendezvous) {
        put(PeerStep::Kind::await, command.target, flags_.ready(command.op));
      }
      if (!command.inputs.empty()) {
        put(PeerStep::Kind::send, command.target);
      }
    }
    put(PeerStep::Kind::signal, command.target, flags_.arrived(command.target_op));
  }

  /// Every member reads the inputs of all other members, and none ends before all have done so. Sums of an all-reduce
  /// are computed in parts, one per member, which the other members then also read.
  void collective(const Command& command) {
    const CollectiveKind kind = std::get<CollectiveShape>(program_.shapes[command.shape]).kind;
    const std::size_t members = command.group.size();
    const auto own_index = static_cast<std::size_t>(std::ranges::find(command.group, rank_) - command.group.begin());
    if (packs(program_, program_.ops[position(command.op)])) {
      put(PeerStep::Kind::pack);
    }
    const auto meet = [&](auto flag) {
      for (const PeerStep::Kind half : {PeerStep::Kind::signal, PeerStep::Kind::await}) {
        for (std::size_t other = 0; other < members; ++other) {
          if (other != own_index) {
            put(half, command.group[other], flag(half == PeerStep::Kind::signal ? own_index : other));
          }
        }
      }
    };
    meet([&](std::size_t member) { return flags_.open(command.op, member); });
    put(PeerStep::Kind::take);
    if (adds(kind)) {
      put(PeerStep::Kind::add);
    }
    meet([&](std::size_t member) { return flags_.done(command.op, member, members); });
    if (adds(kind)) {
      put(PeerStep::Kind::place);
    }
  }

  const Program& program_;
  const PeerFlags& flags_;
  Rank rank_;
  PeerStep step_;
};

}  // namespace

PeerFlags::PeerFlags(const Program& program) : count_(program.mesh.ranks()) {
  for (const Op& op : program.ops) {
    first_.push_back(count_);
    if (op.kind == OpKind::exchange) {
      count_ += 2;
    } else if (op.kind == OpKind::collective) {
      const auto axis = static_cast<std::size_t>(std::get<CollectiveShape>(program.shapes[op.shape]).axis);
      count_ += 2 * std::int64_t{program.mesh.axes[axis].extent};
    }
  }
}

DType wire_of(const Program& program, const Op& op) {
  const Shape& shape = program.shapes[op.shape];
  return op.kind == OpKind::exchange ? std::get<ExchangeShape>(shape).wire : std::get<CollectiveShape>(shape).wire;
}

bool packs(const Program& program, const Op& op) {
  return communicates(op) && op.inputs.count > 0 &&
         dtype_of(program, program.inputs_of(op).front()) != wire_of(program, op);
}

bool unpacks(const Program& program, const Op& op) {
  return communicates(op) && op.outputs.count > 0 &&
         dtype_of(program, program.outputs_of(op).front()) != wire_of(program, op);
}

PeerPlan peer_plan(const Program& program, const PeerFlags& flags, Rank rank, std::span<const Command> commands) {
  return PeerPlanner(program, flags, rank, commands).plan();
}

std::vector<std::string> peer_findings(const Program& program) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto is_mixed = [&](Slice operand) { return has_several_dtypes(program, operand); };
    if (communicates(op) && (std::ranges::any_of(program.inputs_of(op), is_mixed) ||
                             std::ranges::any_of(program.outputs_of(op), is_mixed))) {
      sentences.push_back(
          fmt::format("{} stacks buffers of several dtypes; a transfer between GPUs needs a single dtype",
                      op_in_words(program, OpId{static_cast<std::int32_t>(i)})));
    }
    if (op.kind == OpKind::exchange && packs(program, op) &&
        std::get<ExchangeShape>(program.shapes[op.shape]).protocol == Protocol::pull) {
      sentences.push_back(
          fmt::format("{} pulls {} with wire dtype {}, but data pulled from another GPU's memory cannot be converted",
                      op_in_words(program, OpId{static_cast<std::int32_t>(i)}),
                      name_of(dtype_of(program, program.inputs_of(op).front())), name_of(wire_of(program, op))));
    }
  }
  return sentences;
}

}  // namespace commfuse::validate
