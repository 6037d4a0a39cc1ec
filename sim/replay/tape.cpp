// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/tape.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

constexpr std::uint32_t none = Tape::none;

/// The subject of an instruction: an op on all ranks, or an op on one rank.
using Actor = std::uint32_t;

/// The dependencies between the actors of a program.
class Actors {
 public:
  explicit Actors(const Lowered& lowered)
      : lowered_(lowered),
        program_(*lowered.program),
        ops_(program_.ops.size()),
        ranks_(lowered.matching.uniform ? 1 : program_.mesh.ranks()),
        before_(ops_ * static_cast<std::size_t>(ranks_), none),
        last_(before_.size(), false) {
    check(before_.size() < none / 3, "a replay has fewer than 2^32 / 3 ops of all ranks");
    for (Rank rank = 0; rank < ranks_; ++rank) {
      std::vector<Actor> on_lane(program_.lanes.size(), none);
      for (std::size_t op = 0; op < ops_; ++op) {
        if (lowered_.takes_part(rank, OpId{static_cast<std::int32_t>(op)})) {
          Actor& lane = on_lane[program_.ops[op].lane];
          before_[actor(rank, op)] = std::exchange(lane, actor(rank, op));
        }
      }
      for (const Actor end : on_lane) {
        if (end != none) {
          last_[end] = true;
        }
      }
    }
  }

  [[nodiscard]] std::size_t ops() const { return ops_; }
  [[nodiscard]] Rank ranks() const { return ranks_; }
  [[nodiscard]] std::size_t count() const { return before_.size(); }
  [[nodiscard]] Actor actor(Rank rank, std::size_t op) const {
    return static_cast<Actor>(ranks_ == 1 ? op : static_cast<std::size_t>(rank) * ops_ + op);
  }
  [[nodiscard]] Rank rank_of(Actor actor) const { return ranks_ == 1 ? 0 : static_cast<Rank>(actor / ops_); }
  [[nodiscard]] std::size_t op_of(Actor actor) const { return ranks_ == 1 ? actor : actor % ops_; }
  [[nodiscard]] bool takes_part(Actor actor) const {
    return lowered_.takes_part(rank_of(actor), OpId{static_cast<std::int32_t>(op_of(actor))});
  }
  [[nodiscard]] bool last(Actor actor) const { return last_[actor]; }
  [[nodiscard]] const Op& op(Actor actor) const { return program_.ops[op_of(actor)]; }
  [[nodiscard]] const ExchangeShape* exchange(Actor actor) const {
    return std::get_if<ExchangeShape>(&program_.shapes[op(actor).shape]);
  }
  [[nodiscard]] const CollectiveShape* collective(Actor actor) const {
    return std::get_if<CollectiveShape>(&program_.shapes[op(actor).shape]);
  }

  /// receiver() returns the actor that receives what `sender` sends; sender() returns the actor that sends what
  /// `receiver` receives.
  [[nodiscard]] Actor receiver(Actor sender) const {
    const OpId id{static_cast<std::int32_t>(op_of(sender))};
    const Rank rank = rank_of(sender);
    const Rank target = ranks_ == 1 ? 0 : target_of(program_, *exchange(sender), rank);
    return actor(target, static_cast<std::size_t>(lowered_.matching.receiver(rank, id)));
  }
  [[nodiscard]] Actor sender(Actor receiver) const {
    const OpId id{static_cast<std::int32_t>(op_of(receiver))};
    const Rank rank = rank_of(receiver);
    const Rank source = ranks_ == 1 ? 0 : source_of(program_, *exchange(receiver), rank);
    return actor(source, static_cast<std::size_t>(lowered_.matching.sender(rank, id)));
  }

  /// Returns whether the exchange is a self-paired rendezvous: the send of every rank meets the receive of the same op,
  /// so that all ranks run it together.
  [[nodiscard]] bool meets_itself(Actor actor, const ExchangeShape& shape) const {
    const auto id = static_cast<std::int32_t>(actor);
    return ranks_ == 1 && shape.protocol == Protocol::rendezvous && lowered_.matching.receiver(0, OpId{id}) == id &&
           lowered_.matching.sender(0, OpId{id}) == id;
  }

  /// Visits everything that must have ended before the actor is posted. Waits on its own lane are implied by the op
  /// before it.
  template <class Visit>
  void for_each_before(Actor actor, const Visit& visit) const {
    if (before_[actor] != none) {
      visit(before_[actor]);
    }
    for (const OpId wait : program_.waits_of(op(actor))) {
      const Actor earlier = this->actor(rank_of(actor), position(wait));
      if (program_.ops[position(wait)].lane != op(actor).lane && takes_part(earlier)) {
        visit(earlier);
      }
    }
  }

  /// Visits the members of a collective; if actors are ops on all ranks, this is one actor.
  template <class Visit>
  void for_each_member(Actor actor, const CollectiveShape& shape, const Visit& visit) const {
    if (ranks_ == 1) {
      visit(actor);
      return;
    }
    const auto members = program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
    for (std::int32_t coordinate = 0; coordinate < members; ++coordinate) {
      visit(this->actor(program_.mesh.member(rank_of(actor), shape.axis, coordinate), op_of(actor)));
    }
  }

 private:
  const Lowered& lowered_;
  const Program& program_;
  std::size_t ops_;
  Rank ranks_;
  std::vector<Actor> before_;  // by actor: the previous actor on its lane
  std::vector<bool> last_;     // by actor: whether it is the last actor on its lane
};

/// The values that the recurrence in tape.h defines for an actor.
enum class Phase : std::uint8_t { post, half, end };
struct Node {
  Actor actor = 0;
  Phase phase = Phase::end;
};

/// The turns of a tape, each stored once.
class Turns {
 public:
  Turns(const Mesh& mesh, Tape& tape) : mesh_(mesh), tape_(tape) {
    if (!tape.all_ranks) {
      tape.turns.emplace_back();
    }
  }

  /// Returns the index of the turn with which each rank reads the value of the rank `shift` ahead on an axis.
  std::uint32_t operator()(std::int8_t axis, std::int32_t shift) {
    if (!tape_.all_ranks) {
      return 0;
    }
    const std::pair requested(axis, shift);
    for (const auto& [known, index] : recent_turns_) {
      if (known == requested) {
        return index;
      }
    }
    recent_turns_[0] = std::exchange(recent_turns_[1], {requested, turn_by(axis, shift)});
    return recent_turns_[1].second;
  }

 private:
  std::uint32_t turn_by(std::int8_t axis, std::int32_t shift) {
    const std::int32_t by = wrapped(shift, mesh_.axes[static_cast<std::size_t>(axis)].extent);
    const auto [known, added] = turns_.try_emplace({axis, by}, static_cast<std::uint32_t>(tape_.turns.size()));
    if (added) {
      tape_.turns.push_back({static_cast<std::uint8_t>(axis), by});
    }
    return known->second;
  }

  const Mesh& mesh_;
  Tape& tape_;
  std::map<std::pair<std::int8_t, std::int32_t>, std::uint32_t> turns_;
  /// The two turns that were requested last: in a ring these are mostly the two directions.
  std::array<std::pair<std::pair<std::int8_t, std::int32_t>, std::uint32_t>, 2> recent_turns_{
      {{{-1, 0}, 0}, {{-1, 0}, 0}}};
};

/// Writes the instructions depth first, in program order wherever possible, so that values have short lives.
class Writer {
 public:
  Writer(const Lowered& lowered, Tape& tape) : actors_(lowered), tape_(tape), turn_(lowered.program->mesh, tape) {
    value_.assign(actors_.count() * 3, none);
    tape_.instructions.reserve(actors_.count() * 2);
    tape_.operands.reserve(actors_.count() * 2);
  }

  void write() {
    for (std::size_t op = 0; op < actors_.ops(); ++op) {
      for (Rank rank = 0; rank < actors_.ranks(); ++rank) {
        const Actor actor = actors_.actor(rank, op);
        if (tape_.all_ranks || actors_.takes_part(actor)) {
          const ExchangeShape* exchange = actors_.exchange(actor);
          if (exchange != nullptr && !actors_.meets_itself(actor, *exchange)) {
            reach<Phase::post>(actor);
            if (exchange->sends) {
              reach<Phase::half>(actor);
            }
          }
          reach<Phase::end>(actor);
        }
      }
    }
  }

 private:
  using Instruction = Tape::Instruction;
  using Kind = Tape::Kind;

  [[nodiscard]] std::uint32_t& value(Node node) {
    return value_[std::size_t{node.actor} * 3 + static_cast<std::size_t>(node.phase)];
  }

  template <Phase phase>
  void reach(Actor actor) {
    if (value({actor, phase}) != none || write<phase>(actor)) {  // the usual case, when requested in order
      return;
    }
    open_.push_back({actor, phase});
    reach_open();
  }
  void reach_open() {
    while (!open_.empty()) {
      const Node next = open_.back();
      if (value(next) != none) {
        open_.pop_back();
        continue;
      }
      const std::size_t before = open_.size();
      for_each_needed(next, [&](Node needed) {
        if (value(needed) == none) {
          open_.push_back(needed);
        }
      });
      if (open_.size() == before) {
        open_.pop_back();
        check(write(next), "an instruction comes after all that it needs");
      }
    }
  }

  template <class Visit>
  void for_each_needed(Node node, const Visit& visit) const {
    const auto [actor, phase] = node;
    const ExchangeShape* exchange = actors_.exchange(actor);
    const CollectiveShape* collective = actors_.collective(actor);
    const bool is_kernel = exchange == nullptr && collective == nullptr;
    if (phase == Phase::post || is_kernel || (exchange != nullptr && actors_.meets_itself(actor, *exchange))) {
      actors_.for_each_before(actor, [&](Actor earlier) { visit(Node{earlier, Phase::end}); });
    } else if (phase == Phase::half) {
      if (exchange->protocol != Protocol::push) {
        visit(Node{actors_.receiver(actor), Phase::post});
      }
      visit(Node{actor, Phase::post});
    } else if (collective != nullptr) {
      actors_.for_each_member(actor, *collective, [&](Actor member) { visit(Node{member, Phase::post}); });
    } else {
      if (exchange->receives) {
        visit(Node{actors_.sender(actor), Phase::half});
      }
      if (const std::optional<Phase> part = own_part(*exchange)) {
        visit(Node{actor, *part});
      }
    }
  }

  /// Returns the phase that ends an exchange's own part: the half of a send that is not pulled, otherwise the post. A
  /// rendezvous that only receives has no part of its own.
  static std::optional<Phase> own_part(const ExchangeShape& exchange) {
    if (exchange.sends && exchange.protocol != Protocol::pull) {
      return Phase::half;
    }
    return exchange.protocol == Protocol::rendezvous ? std::nullopt : std::optional(Phase::post);
  }

  bool write(Node node) {
    switch (node.phase) {
      case Phase::post: return write<Phase::post>(node.actor);
      case Phase::half: return write<Phase::half>(node.actor);
      case Phase::end: return write<Phase::end>(node.actor);
    }
    return false;
  }

  /// Returns false, and writes nothing, when a value that it needs is missing.
  template <Phase phase>
  bool write(Actor actor) {
    Instruction instruction{.op = static_cast<std::uint32_t>(actors_.op_of(actor)), .rank = actors_.rank_of(actor)};
    const std::size_t operands = tape_.operands.size();
    bool ready = true;
    if (phase == Phase::half) {
      ready = half(actor, *actors_.exchange(actor), instruction);
    } else if (const ExchangeShape* exchange = actors_.exchange(actor); exchange != nullptr && phase == Phase::end) {
      ready = actors_.meets_itself(actor, *exchange) ? meet(actor, *exchange, instruction)
                                                     : join(actor, *exchange, instruction);
    } else if (const CollectiveShape* collective = actors_.collective(actor); collective && phase == Phase::end) {
      instruction.kind = Kind::collective;
      actors_.for_each_member(actor, *collective, [&](Actor member) { ready &= take({member, Phase::post}); });
    } else {
      instruction.kind = phase == Phase::post ? Kind::post : Kind::kernel;
      ready = take_all_before(actor);
    }
    if (!ready) {
      tape_.operands.resize(operands);
      return false;
    }
    instruction.to = values_++;
    value({actor, phase}) = instruction.to;
    instruction.first = static_cast<std::uint32_t>(operands);
    instruction.count = static_cast<std::uint32_t>(tape_.operands.size() - operands);
    instruction.last = phase == Phase::end && actors_.last(actor);
    if (instruction.kind == Kind::collective) {
      end_members(actor, instruction);
    }
    tape_.instructions.push_back(instruction);
    return true;
  }

  /// Adds an operand. Returns false when its value is missing.
  bool take(Node needed) {
    tape_.operands.push_back(value(needed));
    return tape_.operands.back() != none;
  }

  bool take_all_before(Actor actor) {
    bool ready = true;
    actors_.for_each_before(actor, [&](Actor earlier) { ready &= take({earlier, Phase::end}); });
    return ready;
  }

  bool meet(Actor actor, const ExchangeShape& shape, Instruction& instruction) {
    instruction.kind = Kind::exchange;
    instruction.turn = turn_(shape.axis, shape.shift);
    instruction.turn_back = turn_(shape.axis, -shape.shift);
    return take_all_before(actor);
  }

  void end_members(Actor actor, Instruction& instruction) {
    actors_.for_each_member(actor, *actors_.collective(actor), [&](Actor member) {
      value({member, Phase::end}) = instruction.to;
      instruction.last = instruction.last || actors_.last(member);
    });
  }

  bool half(Actor actor, const ExchangeShape& shape, Instruction& instruction) {
    instruction.kind = Kind::half;
    instruction.self = value({actor, Phase::post});
    if (shape.protocol == Protocol::push) {
      return instruction.self != none;
    }
    instruction.other = value({actors_.receiver(actor), Phase::post});
    instruction.turn = turn_(shape.axis, shape.shift);
    return instruction.self != none && instruction.other != none;
  }

  bool join(Actor actor, const ExchangeShape& shape, Instruction& instruction) {
    instruction.kind = Kind::join;
    bool ready = true;
    if (const std::optional<Phase> phase = own_part(shape)) {
      instruction.self = value({actor, *phase});
      ready = instruction.self != none;
    }
    if (shape.receives) {
      const Actor sender = actors_.sender(actor);
      instruction.other = value({sender, Phase::half});
      instruction.other_op = static_cast<std::uint32_t>(actors_.op_of(sender));
      instruction.other_rank = actors_.rank_of(sender);
      instruction.turn = turn_(shape.axis, -shape.shift);
      ready = ready && instruction.other != none;
    }
    return ready;
  }

  Actors actors_;
  Tape& tape_;
  Turns turn_;
  std::uint32_t values_ = 0;
  std::vector<std::uint32_t> value_;  // by node
  std::vector<Node> open_;
};

/// Returns whether every rank runs every op, and all ops are kernels or self-paired rendezvous exchanges.
bool runs_in_order(const Lowered& lowered) {
  const auto& shapes = lowered.program->shapes;
  return lowered.matching.uniform && std::none_of(shapes.begin(), shapes.end(), [](const Shape& shape) {
           const auto* exchange = std::get_if<ExchangeShape>(&shape);
           return std::holds_alternative<CollectiveShape>(shape) ||
                  (exchange != nullptr &&
                   (!exchange->sends || !exchange->receives || exchange->protocol != Protocol::rendezvous));
         });
}

/// Writes a program that runs in order (runs_in_order()) without the search of Writer, with the same result: each op
/// depends only on earlier ops, and is one instruction.
void write_in_order(const Lowered& lowered, Tape& tape) {
  const Program& program = *lowered.program;
  Turns turn(program.mesh, tape);
  std::vector<Actor> on_lane(program.lanes.size(), none);
  tape.instructions.reserve(program.ops.size());
  tape.operands.reserve(program.ops.size() + program.waits.size());
  for (Actor actor = 0; actor < program.ops.size(); ++actor) {
    const Op& op = program.ops[actor];
    Tape::Instruction& instruction = tape.instructions.emplace_back();
    instruction.op = instruction.to = actor;
    instruction.first = static_cast<std::uint32_t>(tape.operands.size());
    if (const Actor before = std::exchange(on_lane[op.lane], actor); before != none) {
      tape.operands.push_back(before);
    }
    for (const OpId wait : program.waits_of(op)) {
      if (program.ops[position(wait)].lane != op.lane) {
        tape.operands.push_back(static_cast<Actor>(wait));
      }
    }
    instruction.count = static_cast<std::uint32_t>(tape.operands.size()) - instruction.first;
    if (const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[op.shape])) {
      check(lowered.matching.receive_of_send[actor] == static_cast<std::int32_t>(actor), "an exchange meets itself");
      instruction.kind = Tape::Kind::exchange;
      instruction.turn = turn(exchange->axis, exchange->shift);
      instruction.turn_back = turn(exchange->axis, -exchange->shift);
    }
  }
  for (const Actor end : on_lane) {
    if (end != none) {
      tape.instructions[end].last = true;
    }
  }
}

/// Calls `visit` with every register that an instruction reads.
template <class Visit>
void for_each_read(Tape& tape, Tape::Instruction& instruction, const Visit& visit) {
  for (std::uint32_t i = 0; i < instruction.count; ++i) {
    visit(tape.operands[instruction.first + i]);
  }
  for (std::uint32_t* operand : {&instruction.self, &instruction.other}) {
    if (*operand != none) {
      visit(*operand);
    }
  }
}

/// Assigns the same register to values that are never alive at the same time. Goes from the last instruction to the
/// first, so that the first read that it finds is the last read of a value. The operands of an instruction stay alive
/// past the instruction, which therefore never overwrites an operand that it reads through a turn.
void share_registers(Tape& tape, std::size_t values) {
  std::vector<std::uint32_t> register_of(values, none);
  std::vector<std::uint32_t> idle;
  const auto take = [&] {
    if (idle.empty()) {
      return tape.registers++;
    }
    const std::uint32_t register_id = idle.back();
    idle.pop_back();
    return register_id;
  };
  const auto put = [&](std::uint32_t& value) {
    std::uint32_t& assigned = register_of[value];
    if (assigned == none) {
      assigned = take();
    }
    value = assigned;
  };
  for (auto instruction = tape.instructions.rbegin(); instruction != tape.instructions.rend(); ++instruction) {
    put(instruction->to);
    for_each_read(tape, *instruction, put);
    if (instruction->kind == Tape::Kind::exchange) {  // needs one more register while it runs
      instruction->self = take();
      idle.push_back(instruction->self);
    }
    idle.push_back(instruction->to);
  }
}

}  // namespace

Tape tape_of(const Lowered& lowered) {
  Tape tape{.all_ranks = lowered.matching.uniform, .ranks = lowered.program->mesh.ranks()};
  if (runs_in_order(lowered)) {
    write_in_order(lowered, tape);
  } else {
    Writer(lowered, tape).write();
  }
  share_registers(tape, tape.instructions.size());
  return tape;
}

}  // namespace commfuse
