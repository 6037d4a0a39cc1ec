// SPDX-License-Identifier: Apache-2.0
#include "model/proof/mutate.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "model/program/builder.h"
#include "model/program/lower.h"
#include "model/program/matching.h"
#include "model/program/names.h"
#include "model/program/order.h"
#include "model/proof/cells.h"
#include "model/proof/check_program.h"
#include "model/proof/contents.h"
#include "model/proof/deadlock.h"
#include "model/proof/sums.h"

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
    case MutationKind::lane: return "lane";
    case MutationKind::order: return "order";
  }
  return "";
}

std::string_view name_of(Equivalence equivalence) {
  switch (equivalence) {
    case Equivalence::same_accesses: return "same accesses";
    case Equivalence::same_order: return "same order";
    case Equivalence::same_values: return "same values";
    case Equivalence::same_sums: return "same sums";
    case Equivalence::same_outputs: return "same outputs";
  }
  return "";
}

namespace {

/// Gives one op its own copy of its shape and changes this copy.
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
  using Visit = std::function<void(const Mutation&)>;

  Mutator(const Program& program, const Visit& visit) : program_(unshared(program)), visit_(visit) {}

  void run() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const OpId op{static_cast<std::int32_t>(i)};
      shift(op);
      regions(op);
      positions(op);
      waits(op);
      accumulate(op);
      add_inputs(op);
      remove(op);
      lane(op);
      order(op);
    }
  }

 private:
  /// Visits a copy of the program to which `change` was applied, described as "op 3 (gemm): ...". All mutants use one
  /// copy, so that its memory is allocated once.
  template <class Change>
  void mutant(MutationKind kind, OpId op, const std::string& what, const Change& change) {
    mutation_.kind = kind;
    mutation_.op = op;
    mutation_.description = fmt::format("{}: {}", op_in_words(program_, op), what);
    mutation_.program = program_;
    mutation_.now.clear();
    change(mutation_.program);
    visit_(mutation_);
  }

  [[nodiscard]] const Op& record(OpId op) const { return program_.ops[position(op)]; }
  [[nodiscard]] std::int32_t extent(std::size_t axis) const { return program_.mesh.axes[axis].extent; }

  /// Returns value + 1 and value - 1 mod extent, without duplicates and without the value itself.
  [[nodiscard]] static std::vector<std::int32_t> neighbours(std::int32_t value, std::int32_t extent) {
    std::vector<std::int32_t> neighbouring;
    for (const std::int32_t next : {(value + 1) % extent, (value + extent - 1) % extent}) {
      if (next != value && std::find(neighbouring.begin(), neighbouring.end(), next) == neighbouring.end()) {
        neighbouring.push_back(next);
      }
    }
    return neighbouring;
  }

  void shift(OpId op) {
    const auto* exchange = std::get_if<ExchangeShape>(&program_.shapes[record(op).shape]);
    if (exchange == nullptr) {
      return;
    }
    for (const std::int32_t next : neighbours(exchange->shift, extent(static_cast<std::size_t>(exchange->axis)))) {
      mutant(MutationKind::shift, op, fmt::format("shift {} instead of {}", next, exchange->shift),
             [&](Program& changed) {
               reshape(changed, op, [&](Shape& shape) { std::get<ExchangeShape>(shape).shift = next; });
             });
    }
  }

  void regions(OpId op) {
    const std::pair<const char*, std::span<const Slice>> sides[] = {{"input", program_.inputs_of(record(op))},
                                                                    {"output", program_.outputs_of(record(op))}};
    for (const auto& [side, operands] : sides) {
      for (std::size_t i = 0; i < operands.size(); ++i) {
        for (std::uint32_t at = operands[i].first; at < operands[i].first + operands[i].count; ++at) {
          const std::string subject = fmt::format("{} {}, region {}", side, i, at - operands[i].first);
          index(op, at, subject + ", row", &Region::row);
          index(op, at, subject + ", column", &Region::column);
          buffer(op, at, subject);
        }
      }
    }
  }

  /// Changes the positions of an attention's queries.
  void positions(OpId op) {
    const Slice positions_of_op = record(op).positions;
    for (std::uint32_t at = positions_of_op.first; at < positions_of_op.first + positions_of_op.count; ++at) {
      const auto index_in = [at](Program& program) -> Index& { return program.positions[at]; };
      const std::string subject = fmt::format("position {}", at - positions_of_op.first);
      offsets(op, subject, program_.positions[at], index_in);
      for (const std::int32_t more : {1, -1}) {
        mutant(MutationKind::position, op, fmt::format("{} {:+}", subject, more),
               [&](Program& changed) { index_in(changed).constant += more; });
      }
    }
  }

  /// `index_in` returns the corresponding index of the copy.
  template <class IndexIn>
  void offsets(OpId op, const std::string& subject, const Index& index, const IndexIn& index_in) {
    for (std::size_t axis = 0; axis < program_.mesh.axes.size(); ++axis) {
      if (index.terms[axis].scale == 0) {
        continue;
      }
      for (const std::int32_t next : neighbours(index.terms[axis].offset(), extent(axis))) {
        mutant(MutationKind::offset, op,
               fmt::format("{}: offset {} instead of {}{}", subject, next, index.terms[axis].offset(),
                           program_.mesh.axes.size() == 1 ? "" : " along " + program_.mesh.axes[axis].name),
               [&](Program& changed) {
                 IndexTerm& term = index_in(changed).terms[axis];
                 term = {term.scale, next, term.sign()};
               });
      }
    }
  }

  void index(OpId op, std::uint32_t region, const std::string& subject, Index Region::*member) {
    offsets(op, subject, program_.regions[region].*member,
            [&](Program& program) -> Index& { return program.regions[region].*member; });
    for (const std::int32_t more : {1, -1}) {
      Region moved = program_.regions[region];
      (moved.*member).constant += more;
      if (stays_inside(op, moved)) {
        mutant(MutationKind::position, op, fmt::format("{} {:+}", subject, more),
               [&](Program& changed) { changed.regions[region] = moved; });
      }
    }
  }

  [[nodiscard]] bool stays_inside(OpId op, const Region& region) const {
    const Buffer& buffer = program_.buffers[position(region.buffer)];
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      const Coordinates coordinates = program_.mesh.coordinates(rank);
      const Rectangle rectangle = rectangle_of(program_, region, coordinates);
      if (record(op).where.holds(coordinates) &&
          (rectangle.row < 0 || rectangle.row + rectangle.rows > buffer.rows.blocks || rectangle.column < 0 ||
           rectangle.column + rectangle.columns > buffer.columns.blocks)) {
        return false;
      }
    }
    return true;
  }

  void buffer(OpId op, std::uint32_t region, const std::string& subject) {
    const BufferId current = program_.regions[region].buffer;
    const Buffer& used = program_.buffers[position(current)];
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& other = program_.buffers[i];
      const BufferId id{static_cast<std::int32_t>(i)};
      if (id != current && other.rows == used.rows && other.columns == used.columns) {
        mutant(MutationKind::buffer, op, fmt::format("{}: {} instead of {}", subject, other.name, used.name),
               [&](Program& changed) { changed.regions[region].buffer = id; });
      }
    }
  }

  void waits(OpId op) {
    const auto waits = program_.waits_of(record(op));
    for (std::size_t i = 0; i < waits.size(); ++i) {
      mutant(MutationKind::wait, op, fmt::format("no wait for op {}", static_cast<std::int32_t>(waits[i])),
             [&](Program& changed) {
               Slice& kept = changed.ops[position(op)].waits;
               changed.waits.erase(changed.waits.begin() + kept.first + static_cast<std::ptrdiff_t>(i));
               --kept.count;
               for (Op& other : changed.ops) {
                 other.waits.first -= other.waits.first > kept.first + i ? 1 : 0;
               }
             });
    }
  }

  void accumulate(OpId op) {
    if (const auto* gemm = std::get_if<GemmShape>(&program_.shapes[record(op).shape])) {
      mutant(MutationKind::accumulate, op, gemm->accumulate ? "overwrites its output" : "adds to its output",
             [&](Program& changed) {
               reshape(changed, op, [](Shape& shape) {
                 std::get<GemmShape>(shape).accumulate = !std::get<GemmShape>(shape).accumulate;
               });
             });
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
        mutant(MutationKind::add_input, op, fmt::format("input {} dropped", i),
               [&](Program& changed) { replace_inputs(changed, op, fewer); });
      }
      mutant(MutationKind::add_input, op, fmt::format("input {} used twice", i),
             [&](Program& changed) { replace_inputs(changed, op, more); });
    }
  }

  /// Appends the new list to the pool; nothing refers to the replaced list any more.
  static void replace_inputs(Program& program, OpId op, const std::vector<Slice>& inputs) {
    const auto count = static_cast<std::uint32_t>(inputs.size());
    program.ops[position(op)].inputs = {static_cast<std::uint32_t>(program.operands.size()), count};
    program.operands.insert(program.operands.end(), inputs.begin(), inputs.end());
    reshape(program, op,
            [&](Shape& shape) { std::get<ElementwiseShape>(shape).inputs = static_cast<std::int32_t>(count); });
  }

  void remove(OpId removed) {
    mutant(MutationKind::removal, removed, "removed", [&](Program& changed) {
      const auto instead = program_.waits_of(record(removed));
      changed.ops.erase(changed.ops.begin() + static_cast<std::ptrdiff_t>(position(removed)));
      changed.waits.clear();
      for (Op& op : changed.ops) {
        const auto waits = program_.waits_of(op);  // its slice is still the original's
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
    });
  }

  void lane(OpId op) {
    for (std::size_t i = 0; i < program_.lanes.size(); ++i) {
      if (i != record(op).lane) {
        mutant(MutationKind::lane, op,
               fmt::format("on {} instead of {}", name_of(program_.lanes[i]), name_of(program_.lanes[record(op).lane])),
               [&](Program& changed) { changed.ops[position(op)].lane = static_cast<std::uint16_t>(i); });
      }
    }
  }

  /// Swaps the places and ids of the op and the next one.
  void order(OpId op) {
    const OpId next{static_cast<std::int32_t>(op) + 1};
    if (position(next) == program_.ops.size()) {
      return;
    }
    const auto waits = program_.waits_of(record(next));
    if (std::find(waits.begin(), waits.end(), op) != waits.end()) {
      return;
    }
    mutant(MutationKind::order, op, fmt::format("after op {}", static_cast<std::int32_t>(next)), [&](Program& changed) {
      std::swap(changed.ops[position(op)], changed.ops[position(next)]);
      for (OpId& wait : changed.waits) {
        wait = wait == op ? next : wait == next ? op : wait;
      }
      for (std::size_t i = 0; i < program_.ops.size(); ++i) {
        mutation_.now.push_back(OpId{static_cast<std::int32_t>(i)});
      }
      std::swap(mutation_.now[position(op)], mutation_.now[position(next)]);
    });
  }

  Program program_;
  const Visit& visit_;
  Mutation mutation_;
};

// --- proofs of equivalence -----------------------------------------------------------------------------------------

/// Returns true if two operands are the same rectangles on a rank.
bool same_places(const Program& a, Slice left, const Program& b, Slice right, const Coordinates& coordinates) {
  const std::span<const Region> ours = a.regions_of(left);
  const std::span<const Region> theirs = b.regions_of(right);
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                    [&](const Region& our, const Region& their) {
                      return our == their || rectangle_of(a, our, coordinates) == rectangle_of(b, their, coordinates);
                    });
}

bool same_places(const Program& a, std::span<const Slice> left, const Program& b, std::span<const Slice> right,
                 const Coordinates& coordinates) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](Slice our, Slice their) { return same_places(a, our, b, their, coordinates); });
}

/// Returns the local order of every rank; a single order if it is the same on all ranks.
std::vector<Order> orders_of(const Program& program, const Matching& matching) {
  std::vector<Order> orders;
  for (Rank rank = 0; rank < (matching.uniform ? 1 : program.mesh.ranks()); ++rank) {
    orders.emplace_back(program, rank);
  }
  return orders;
}

/// Returns true if shapes are equal except for the shift of an exchange and the number of inputs of an add.
bool similar_shapes(Shape a, const Shape& b) {
  const auto* exchange = std::get_if<ExchangeShape>(&b);
  if (auto* other = std::get_if<ExchangeShape>(&a); other != nullptr && exchange != nullptr) {
    other->shift = exchange->shift;
  }
  const auto* add = std::get_if<ElementwiseShape>(&b);
  if (auto* other = std::get_if<ElementwiseShape>(&a);
      other != nullptr && add != nullptr && add->function == Function::add) {
    other->inputs = add->inputs;
  }
  return a == b;
}

Trace trace_of(const Program& program, Sums& sums) {
  Findings findings;
  Trace trace;
  const std::vector<Event> events = run_abstractly(program, match(program), findings);
  check_contents(program, CellMap(program), events, sums, findings, &trace);
  return trace;
}

/// Two programs and the correspondence of their ops.
class Pair {
 public:
  Pair(const Program& a, const Program& b, std::span<const OpId> now) : a_(a), b_(b), now_(now) {}

  /// Returns true if all ops correspond: `same(shape, shape)` is true, and kinds, purposes and predicates are equal.
  template <class Same>
  [[nodiscard]] bool same_ops(const Same& same) const {
    return a_.ops.size() == b_.ops.size() && each_op([&](OpId op) {
             const Op& left = record(op);
             const Op& right = twin(op);
             return left.kind == right.kind && left.purpose == right.purpose && left.where == right.where &&
                    same(a_.shapes[left.shape], b_.shapes[right.shape]);
           });
  }

  /// Returns true if all ops correspond, with equal shapes and regions.
  [[nodiscard]] bool same_work() const { return same_ops(std::equal_to<>{}) && same_regions(); }
  /// Requires same_work().
  [[nodiscard]] bool same_accesses() const { return same_ids() && same_lanes() && same_waits(); }

  [[nodiscard]] bool same_regions() const {
    for (Rank rank = 0; rank < a_.mesh.ranks(); ++rank) {
      const Coordinates coordinates = a_.mesh.coordinates(rank);
      const bool same = each_op([&](OpId op) {
        return !record(op).where.holds(coordinates) ||
               ((record(op).kind != OpKind::attention ||
                 positions_at(a_, record(op), coordinates) == positions_at(b_, twin(op), coordinates)) &&
                same_places(a_, a_.inputs_of(record(op)), b_, b_.inputs_of(twin(op)), coordinates) &&
                same_places(a_, a_.outputs_of(record(op)), b_, b_.outputs_of(twin(op)), coordinates));
      });
      if (!same) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool same_ids() const { return now_.empty(); }

  [[nodiscard]] bool same_lanes() const {
    return each_op([&](OpId op) { return a_.lanes[record(op).lane] == b_.lanes[twin(op).lane]; });
  }

  /// Requires same_ids().
  [[nodiscard]] bool same_waits() const {
    return each_op([&](OpId op) {
      const auto left = a_.waits_of(record(op));
      const auto right = b_.waits_of(twin(op));
      return std::is_permutation(left.begin(), left.end(), right.begin(), right.end());
    });
  }

  /// `orders` and `matching` belong to `a`.
  [[nodiscard]] bool same_order(const std::vector<Order>& orders, const Matching& matching) const {
    const Matching right = match(b_);
    if (right.uniform != matching.uniform) {
      return false;
    }
    const std::vector<Order> theirs = orders_of(b_, right);
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      if (!same_order(orders[rank], theirs[rank])) {
        return false;
      }
    }
    return same_partners(matching, right);
  }

  /// Returns true if every send meets the same receive.
  [[nodiscard]] bool same_partners(const Matching& left, const Matching& right) const {
    if (!left.problems.empty() || !right.problems.empty()) {
      return false;
    }
    for (Rank rank = 0; rank < a_.mesh.ranks(); ++rank) {
      const bool same = each_op([&](OpId op) {
        const std::int32_t receiver = left.receiver(rank, op);
        return (receiver < 0 ? receiver : static_cast<std::int32_t>(in_b(OpId{receiver}))) ==
               right.receiver(rank, in_b(op));
      });
      if (!same) {
        return false;
      }
    }
    return true;
  }

  /// Proves same_values, same_sums or same_outputs. A program that passes check_program() has no hazards, so its values
  /// do not depend on time, and every op of one program works on the same contributions to the same blocks as in the
  /// other: the same sums, though perhaps added in a different order. Only the parts that a sum growing in place
  /// contains so far may differ; every other op that reads the sum reads the same value as its counterpart, and the
  /// final contents of both programs are proved. `left` has the values of `a`. Requires both programs to have passed
  /// check_program().
  [[nodiscard]] std::optional<Equivalence> by_values(const Trace& left, Sums& sums) const {
    if (!same_ops(similar_shapes)) {
      return std::nullopt;
    }
    const bool same_shapes = same_ops(std::equal_to<>{});
    const Trace right = trace_of(b_, sums);
    const auto agree = [&](const auto& equal) {
      return each_op([&](OpId op) {
        for (std::size_t iteration = 0; iteration < 2; ++iteration) {
          for (Rank rank = 0; rank < a_.mesh.ranks(); ++rank) {
            if (!equal(op, left.at(iteration, rank, op), right.at(iteration, rank, in_b(op)))) {
              return false;
            }
          }
        }
        return true;
      });
    };
    if (same_shapes && agree([](OpId, const OpValues& l, const OpValues& r) { return l == r; })) {
      return Equivalence::same_values;
    }
    if (same_shapes && agree([&](OpId op, const OpValues& l, const OpValues& r) {
          return same_but_for_sum(growing_input(op), l, r);
        })) {
      return Equivalence::same_sums;
    }
    const bool outputs_agree = agree([](OpId, const OpValues& l, const OpValues& r) { return l.output == r.output; });
    return outputs_agree ? std::optional(Equivalence::same_outputs) : std::nullopt;
  }

 private:
  [[nodiscard]] bool same_order(const Order& left, const Order& right) const {
    return each_op([&](OpId second) {
      return !left.takes_part(second) || each_op([&](OpId first) {
        return first == second || !left.takes_part(first) ||
               left.before(first, second) == right.before(in_b(first), in_b(second));
      });
    });
  }

  /// Returns the index of the traced input that is also the output of an op; nullopt if the op does not add to its
  /// output.
  [[nodiscard]] std::optional<std::size_t> growing_input(OpId op) const {
    const Shape& shape = a_.shapes[record(op).shape];
    const auto* gemm = std::get_if<GemmShape>(&shape);
    if (gemm != nullptr) {
      return gemm->accumulate ? std::optional<std::size_t>(2) : std::nullopt;
    }
    const auto* elementwise = std::get_if<ElementwiseShape>(&shape);
    if (elementwise == nullptr || elementwise->function != Function::add) {
      return std::nullopt;
    }
    const auto out = a_.regions_of(a_.outputs_of(record(op)).front());
    const auto inputs = a_.inputs_of(record(op));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto in = a_.regions_of(inputs[i]);
      if (std::equal(in.begin(), in.end(), out.begin(), out.end())) {
        return i;
      }
    }
    return std::nullopt;
  }

  static bool same_blocks(const CellValues& left, const CellValues& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](const CellValue& l, const CellValue& r) {
      return l.tensor == r.tensor && l.row == r.row && l.column == r.column;
    });
  }

  static bool same_but_for_sum(std::optional<std::size_t> growing, const OpValues& left, const OpValues& right) {
    if (!growing) {
      return left == right;
    }
    if (left.inputs.size() != right.inputs.size() || !same_blocks(left.output, right.output)) {
      return false;
    }
    for (std::size_t i = 0; i < left.inputs.size(); ++i) {
      const bool same =
          i == *growing ? same_blocks(left.inputs[i], right.inputs[i]) : left.inputs[i] == right.inputs[i];
      if (!same) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] OpId in_b(OpId op) const { return now_.empty() ? op : now_[position(op)]; }
  [[nodiscard]] const Op& record(OpId op) const { return a_.ops[position(op)]; }
  [[nodiscard]] const Op& twin(OpId op) const { return b_.ops[position(in_b(op))]; }

  /// Returns true if holds(op) for all ops of `a`.
  template <class Holds>
  [[nodiscard]] bool each_op(const Holds& holds) const {
    for (std::size_t op = 0; op < a_.ops.size(); ++op) {
      if (!holds(OpId{static_cast<std::int32_t>(op)})) {
        return false;
      }
    }
    return true;
  }

  const Program& a_;
  const Program& b_;
  std::span<const OpId> now_;
};

}  // namespace

void for_each_mutation(const Program& program, const std::function<void(const Mutation&)>& visit) {
  Mutator(program, visit).run();
}

std::vector<Mutation> mutations_of(const Program& program) {
  std::vector<Mutation> mutations;
  for_each_mutation(program, [&](const Mutation& mutation) { mutations.push_back(mutation); });
  return mutations;
}

Equivalences::Equivalences(const Program& a, const Trace& trace, Sums& sums)
    : a_(a), trace_(trace), sums_(sums), matching_(match(a)), orders_(orders_of(a, matching_)) {}

std::optional<Equivalence> Equivalences::with(const Program& b, std::span<const OpId> now) const {
  const Pair pair(a_, b, now);
  if (pair.same_work()) {
    if (pair.same_accesses()) {
      return Equivalence::same_accesses;
    }
    if (pair.same_order(orders_, matching_)) {
      return Equivalence::same_order;
    }
  }
  return pair.by_values(trace_, sums_);
}

std::optional<Equivalence> equivalence_of(const Program& a, const Program& b, std::span<const OpId> now) {
  const Pair pair(a, b, now);
  if (pair.same_work()) {
    if (pair.same_accesses()) {
      return Equivalence::same_accesses;
    }
    const Matching matching = match(a);
    if (pair.same_order(orders_of(a, matching), matching)) {
      return Equivalence::same_order;
    }
  }
  if (!pair.same_ops(similar_shapes) || !check_program(a).ok() || !check_program(b).ok()) {
    return std::nullopt;
  }
  Sums sums;
  const Trace trace = trace_of(a, sums);
  return pair.by_values(trace, sums);
}

}  // namespace commfuse
