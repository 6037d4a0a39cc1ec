// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/mutate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/schedule/cells.h"
#include "model/schedule/check_program.h"
#include "model/schedule/contents.h"
#include "model/schedule/deadlock.h"
#include "model/schedule/lower.h"
#include "model/schedule/matching.h"
#include "model/schedule/order.h"
#include "model/schedule/sums.h"

namespace commfuse {

std::string_view name_of(MutationKind kind) {
  switch (kind) {
    case MutationKind::shift: return "shift";
    case MutationKind::offset: return "offset";
    case MutationKind::position: return "position";
    case MutationKind::buffer: return "buffer";
    case MutationKind::wait: return "wait";
    case MutationKind::accumulate: return "accumulate";
    case MutationKind::add_input: return "add_input";
    case MutationKind::removal: return "removal";
  }
  return "";
}

std::string_view name_of(Equivalence equivalence) {
  switch (equivalence) {
    case Equivalence::same_accesses: return "same accesses";
    case Equivalence::same_order: return "same order";
    case Equivalence::same_values: return "same values";
  }
  return "";
}

namespace {

/// Gives one op a shape of its own.
template <class Change>
void reshape(Program& program, OpId op, const Change& change) {
  Op& record = program.ops[position(op)];
  Shape shape = program.shapes[record.shape];
  change(shape);
  record.shape = static_cast<std::uint32_t>(program.shapes.size());
  program.shapes.push_back(shape);
}

class Mutator {
 public:
  explicit Mutator(const Program& program) : program_(program) {}

  std::vector<Mutation> all() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const OpId op{static_cast<std::int32_t>(i)};
      shift(op);
      regions(op);
      positions(op);
      waits(op);
      accumulate(op);
      add_inputs(op);
      remove(op);
    }
    return std::move(mutations_);
  }

 private:
  /// A copy to change, described as "op 3 (gemm): ...".
  Program& mutant(MutationKind kind, OpId op, const std::string& what) {
    mutations_.push_back({kind, fmt::format("{}: {}", op_in_words(program_, op), what), program_});
    return mutations_.back().program;
  }

  [[nodiscard]] const Op& record(OpId op) const { return program_.ops[position(op)]; }
  [[nodiscard]] std::int32_t extent(std::size_t axis) const { return program_.mesh.axes[axis].extent; }

  /// What +1 and -1 make of a value mod extent, without repeating it or each other.
  [[nodiscard]] static std::vector<std::int32_t> neighbours(std::int32_t value, std::int32_t extent) {
    std::vector<std::int32_t> found;
    for (const std::int32_t next : {(value + 1) % extent, (value + extent - 1) % extent}) {
      if (next != value && std::find(found.begin(), found.end(), next) == found.end()) {
        found.push_back(next);
      }
    }
    return found;
  }

  void shift(OpId op) {
    const auto* exchange = std::get_if<ExchangeShape>(&program_.shapes[record(op).shape]);
    if (exchange == nullptr) {
      return;
    }
    for (const std::int32_t next : neighbours(exchange->shift, extent(static_cast<std::size_t>(exchange->axis)))) {
      Program& changed = mutant(MutationKind::shift, op, fmt::format("shift {} instead of {}", next, exchange->shift));
      reshape(changed, op, [&](Shape& shape) { std::get<ExchangeShape>(shape).shift = next; });
    }
  }

  void regions(OpId op) {
    const std::pair<const char*, std::span<const Slice>> sides[] = {{"input", program_.inputs_of(record(op))},
                                                                    {"output", program_.outputs_of(record(op))}};
    for (const auto& [side, operands] : sides) {
      for (std::size_t i = 0; i < operands.size(); ++i) {
        for (std::uint32_t at = operands[i].first; at < operands[i].first + operands[i].count; ++at) {
          const std::string which = fmt::format("{} {}, region {}", side, i, at - operands[i].first);
          index(op, at, which + ", row", &Region::row);
          index(op, at, which + ", column", &Region::column);
          buffer(op, at, which);
        }
      }
    }
  }

  /// What an attention says of where its queries stand.
  void positions(OpId op) {
    const Slice all = record(op).positions;
    for (std::uint32_t at = all.first; at < all.first + all.count; ++at) {
      const auto place = [at](Program& program) -> Index& { return program.positions[at]; };
      const std::string which = fmt::format("position {}", at - all.first);
      offsets(op, which, program_.positions[at], place);
      for (const std::int32_t more : {1, -1}) {
        place(mutant(MutationKind::position, op, fmt::format("{} {:+}", which, more))).constant += more;
      }
    }
  }

  /// `place` finds the index in the copy.
  template <class Place>
  void offsets(OpId op, const std::string& which, const Index& index, const Place& place) {
    for (std::size_t axis = 0; axis < program_.mesh.axes.size(); ++axis) {
      if (index.terms[axis].scale == 0) {
        continue;
      }
      for (const std::int32_t next : neighbours(index.terms[axis].offset, extent(axis))) {
        Program& changed = mutant(MutationKind::offset, op,
                                  fmt::format("{}: offset {} instead of {}", which, next, index.terms[axis].offset));
        place(changed).terms[axis].offset = next;
      }
    }
  }

  void index(OpId op, std::uint32_t region, const std::string& which, Index Region::*member) {
    offsets(op, which, program_.regions[region].*member,
            [&](Program& program) -> Index& { return program.regions[region].*member; });
    for (const std::int32_t more : {1, -1}) {
      Region moved = program_.regions[region];
      (moved.*member).constant += more;
      if (stays_inside(op, moved)) {
        mutant(MutationKind::position, op, fmt::format("{} {:+}", which, more)).regions[region] = moved;
      }
    }
  }

  [[nodiscard]] bool stays_inside(OpId op, const Region& region) const {
    const Buffer& buffer = program_.buffers[position(region.buffer)];
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      const Coordinates here = program_.mesh.coordinates(rank);
      const Rectangle place = rectangle_of(program_, region, here);
      if (record(op).where.holds(here) && (place.row < 0 || place.row + place.rows > buffer.rows.blocks ||
                                           place.column < 0 || place.column + place.columns > buffer.columns.blocks)) {
        return false;
      }
    }
    return true;
  }

  void buffer(OpId op, std::uint32_t region, const std::string& which) {
    const BufferId current = program_.regions[region].buffer;
    const Buffer& held = program_.buffers[position(current)];
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& other = program_.buffers[i];
      const BufferId id{static_cast<std::int32_t>(i)};
      if (id != current && other.rows == held.rows && other.columns == held.columns) {
        mutant(MutationKind::buffer, op, fmt::format("{}: {} instead of {}", which, other.name, held.name))
            .regions[region]
            .buffer = id;
      }
    }
  }

  void waits(OpId op) {
    const auto waits = program_.waits_of(record(op));
    for (std::size_t i = 0; i < waits.size(); ++i) {
      Program& changed =
          mutant(MutationKind::wait, op, fmt::format("no wait for op {}", static_cast<std::int32_t>(waits[i])));
      Slice& kept = changed.ops[position(op)].waits;
      changed.waits.erase(changed.waits.begin() + kept.first + static_cast<std::ptrdiff_t>(i));
      --kept.count;
      for (Op& other : changed.ops) {
        other.waits.first -= other.waits.first > kept.first + i ? 1 : 0;
      }
    }
  }

  void accumulate(OpId op) {
    if (const auto* gemm = std::get_if<GemmShape>(&program_.shapes[record(op).shape])) {
      Program& changed =
          mutant(MutationKind::accumulate, op, gemm->accumulate ? "overwrites its output" : "adds to its output");
      reshape(changed, op,
              [](Shape& shape) { std::get<GemmShape>(shape).accumulate = !std::get<GemmShape>(shape).accumulate; });
    }
  }

  void add_inputs(OpId op) {
    const auto* shape = std::get_if<ElementwiseShape>(&program_.shapes[record(op).shape]);
    if (shape == nullptr || shape->function != Function::add) {
      return;
    }
    const auto inputs = program_.inputs_of(record(op));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<Slice> fewer(inputs.begin(), inputs.end());
      std::vector<Slice> more = fewer;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      more.push_back(inputs[i]);
      if (!fewer.empty()) {
        replace_inputs(mutant(MutationKind::add_input, op, fmt::format("input {} dropped", i)), op, fewer);
      }
      replace_inputs(mutant(MutationKind::add_input, op, fmt::format("input {} taken twice", i)), op, more);
    }
  }

  /// Puts the new list behind the others; what it replaces is no longer referred to.
  static void replace_inputs(Program& program, OpId op, const std::vector<Slice>& inputs) {
    const auto count = static_cast<std::uint32_t>(inputs.size());
    program.ops[position(op)].inputs = {static_cast<std::uint32_t>(program.operands.size()), count};
    program.operands.insert(program.operands.end(), inputs.begin(), inputs.end());
    reshape(program, op,
            [&](Shape& shape) { std::get<ElementwiseShape>(shape).inputs = static_cast<std::int32_t>(count); });
  }

  void remove(OpId removed) {
    Program& changed = mutant(MutationKind::removal, removed, "left out");
    const auto instead = program_.waits_of(record(removed));
    changed.ops.erase(changed.ops.begin() + static_cast<std::ptrdiff_t>(position(removed)));
    changed.waits.clear();
    for (Op& op : changed.ops) {
      const auto waits = program_.waits_of(op);  // its slice still is that of the original
      const auto first = static_cast<std::uint32_t>(changed.waits.size());
      for (const OpId wait : waits) {
        if (wait == removed) {
          changed.waits.insert(changed.waits.end(), instead.begin(), instead.end());
        } else {
          changed.waits.push_back(wait < removed ? wait : OpId{static_cast<std::int32_t>(wait) - 1});
        }
      }
      op.waits = {first, static_cast<std::uint32_t>(changed.waits.size()) - first};
    }
  }

  const Program& program_;
  std::vector<Mutation> mutations_;
};

// --- proofs of equivalence -----------------------------------------------------------------------------------------

std::vector<std::vector<Rectangle>> places_of(const Program& program, std::span<const Slice> operands,
                                              const Coordinates& here) {
  std::vector<std::vector<Rectangle>> places;
  for (const Slice operand : operands) {
    places.emplace_back();
    for (const Region& region : program.regions_of(operand)) {
      places.back().push_back(rectangle_of(program, region, here));
    }
  }
  return places;
}

/// The same ops of the same shapes on the same lanes for the same purposes.
bool same_ops(const Program& a, const Program& b) {
  return std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), [&](const Op& left, const Op& right) {
    return left.kind == right.kind && left.purpose == right.purpose && left.where == right.where &&
           a.lanes[left.lane] == b.lanes[right.lane] && a.shapes[left.shape] == b.shapes[right.shape];
  });
}

bool same_regions(const Program& a, const Program& b) {
  for (Rank rank = 0; rank < a.mesh.ranks(); ++rank) {
    const Coordinates here = a.mesh.coordinates(rank);
    for (std::size_t op = 0; op < a.ops.size(); ++op) {
      if (a.ops[op].where.holds(here) &&
          (places_of(a, a.inputs_of(a.ops[op]), here) != places_of(b, b.inputs_of(b.ops[op]), here) ||
           (a.ops[op].kind == OpKind::attention &&
            positions_at(a, a.ops[op], here) != positions_at(b, b.ops[op], here)) ||
           places_of(a, a.outputs_of(a.ops[op]), here) != places_of(b, b.outputs_of(b.ops[op]), here))) {
        return false;
      }
    }
  }
  return true;
}

bool same_waits(const Program& a, const Program& b) {
  for (std::size_t op = 0; op < a.ops.size(); ++op) {
    const auto left = a.waits_of(a.ops[op]);
    const auto right = b.waits_of(b.ops[op]);
    if (!std::is_permutation(left.begin(), left.end(), right.begin(), right.end())) {
      return false;
    }
  }
  return true;
}

bool same_order(const Program& a, const Program& b) {
  for (Rank rank = 0; rank < a.mesh.ranks(); ++rank) {
    const Order left(a, rank);
    const Order right(b, rank);
    for (std::size_t i = 0; i < a.ops.size(); ++i) {
      for (std::size_t j = i + 1; j < a.ops.size(); ++j) {
        const OpId first{static_cast<std::int32_t>(i)};
        const OpId second{static_cast<std::int32_t>(j)};
        if (left.takes_part(first) && left.takes_part(second) &&
            left.before(first, second) != right.before(first, second)) {
          return false;
        }
      }
    }
  }
  return true;
}

Trace trace_of(const Program& program, Sums& sums) {
  Findings findings;
  Trace trace;
  const std::vector<Event> events = run_abstractly(program, match(program), findings);
  check_contents(program, CellMap(program), events, sums, findings, &trace);
  return trace;
}

/// What passes check_program() has no hazards, so its values do not depend on time, and every op of one program works
/// on the same contributions to the same blocks as in the other: the same sums, if perhaps added up in another order.
bool same_values(const Program& a, const Program& b) {
  if (!check_program(a).ok() || !check_program(b).ok()) {
    return false;
  }
  Sums sums;
  const Trace left = trace_of(a, sums);
  return left == trace_of(b, sums);
}

}  // namespace

std::vector<Mutation> mutations_of(const Program& program) { return Mutator(program).all(); }

std::optional<Equivalence> equivalence_of(const Program& a, const Program& b) {
  if (!same_ops(a, b)) {
    return std::nullopt;
  }
  if (same_regions(a, b)) {
    if (same_waits(a, b)) {
      return Equivalence::same_accesses;
    }
    if (same_order(a, b)) {
      return Equivalence::same_order;
    }
  }
  return same_values(a, b) ? std::optional(Equivalence::same_values) : std::nullopt;
}

}  // namespace commfuse
