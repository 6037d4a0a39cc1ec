// SPDX-License-Identifier: Apache-2.0
// Determines whether a program is rotation-symmetric, and how its buffers and tensors move.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "model/proof/bounds.h"
#include "model/proof/symmetry.h"

namespace commfuse {

namespace {

using Operand = std::span<const Region>;

}  // namespace

/// The structured bindings below name every field of the structs that they decompose, so a new field does not compile
/// until it is named here. Decide then how the field moves when all ranks turn, or treat programs that use it as not
/// symmetric.
///
/// Finds the rotations: first those that indices state; then, until nothing changes, those that follow because two
/// operands of an op, a content and its label, or a tensor and its factors move in step. Anything without a rotation by
/// then does not move. The last pass changes nothing, so it has verified everything.
class Symmetry::Decision {
 public:
  Decision(const Program& program, const Matching& matching)
      : program_(program), matching_(matching), symmetry_(program) {}

  std::optional<Symmetry> symmetry() && {
    if (!matching_.uniform || !named_by_indices()) {
      return std::nullopt;
    }
    do {
      changed_ = false;
      if (!tensors() || !contents() || (!changed_ && !ops())) {
        return std::nullopt;
      }
    } while (changed_);
    symmetry_.still_ = still_;
    return std::move(symmetry_);
  }

 private:
  /// Rows or columns of an operand, for comparison with others.
  struct Side {
    Operand regions;
    bool columns = false;
    std::int32_t times = 1;  // number of its blocks that correspond to one block of the other side
    int counted = -1;        // axis whose digit counts the ranks of a collective; excluded from the comparison
  };
  static Side rows(Operand regions) { return {regions, false}; }
  static Side columns(Operand regions) { return {regions, true}; }

  [[nodiscard]] std::size_t axes() const { return program_.mesh.axes.size(); }
  [[nodiscard]] std::int32_t extent(std::size_t axis) const { return program_.mesh.axes[axis].extent; }
  [[nodiscard]] Operand input(const Op& op, std::size_t i) const {
    return program_.regions_of(program_.inputs_of(op)[i]);
  }
  [[nodiscard]] Operand output(const Op& op) const { return program_.regions_of(program_.outputs_of(op).front()); }
  Direction& direction(const Region& region, bool of_columns) {
    Moves& grid = symmetry_.grids_[position(region.buffer)];
    return of_columns ? grid.columns : grid.rows;
  }
  /// Returns the region of a rectangle of a tensor; the ids of tensors follow the ids of buffers.
  [[nodiscard]] Region label(TensorId tensor, const Content& content) const {
    const BufferId grid{static_cast<std::int32_t>(symmetry_.buffers_ + position(tensor))};
    return {grid, content.row, content.column, content.here.rows, content.here.columns};
  }
  [[nodiscard]] Region whole(TensorId id) const {
    const Tensor& tensor = program_.tensors[position(id)];
    return {BufferId{static_cast<std::int32_t>(symmetry_.buffers_ + position(id))}, 0, 0, tensor.rows.blocks,
            tensor.columns.blocks};
  }

  // --- rotations that indices state --------------------------------------------------------------------------------

  bool named_by_indices() {
    for (const auto* contents : {&program_.initial, &program_.final}) {
      for (const Content& content : *contents) {
        if (!named_by(content.here) || !named_by(label(content.tensor, content))) {
          return false;
        }
      }
    }
    return std::all_of(program_.regions.begin(), program_.regions.end(),
                       [&](const Region& region) { return !refers(region) || named_by(region); });
  }
  /// Returns false for a region without a valid buffer, which can only be an unused one.
  [[nodiscard]] bool refers(const Region& region) const { return position(region.buffer) < symmetry_.buffers_; }
  bool named_by(const Region& region) {
    return (region.row.fixed() || named_by(region.row, direction(region, false))) &&
           (region.column.fixed() || named_by(region.column, direction(region, true)));
  }
  bool named_by(const Index& index, Direction& moves) {
    for (std::size_t axis = 0; axis < axes(); ++axis) {
      const IndexTerm& term = index.terms[axis];
      if (term.scale != 0 && extent(axis) > 1 &&
          !moves.move(program_.mesh, axis, std::int64_t{term.sign()} * term.scale)) {
        return false;
      }
    }
    return true;
  }

  // --- rotations that follow ---------------------------------------------------------------------------------------

  [[nodiscard]] std::optional<Rotation> inside(const Side& side) const {
    std::optional<Rotation> rotation =
        side.columns ? symmetry_.columns_inside(side.regions) : symmetry_.rows_inside(side.regions);
    if (side.times == 1 && side.counted < 0) {
      return rotation;
    }
    for (std::size_t axis = 0; rotation && axis < axes(); ++axis) {
      std::int32_t& step = rotation->step[axis];
      if (std::cmp_equal(axis, side.counted)) {
        step = 0;
      } else if (step % side.times != 0) {
        return std::nullopt;
      }
      step /= side.times;
    }
    return rotation;
  }

  /// Returns true for a single region that is the same on all ranks, of a buffer or tensor that does not move.
  bool stays(const Side& side) {
    const Region& region = side.regions.front();
    const Index& first = side.columns ? region.column : region.row;
    const Direction& whole = direction(region, side.columns);
    return side.regions.size() == 1 && first.fixed() && whole.rotation.still() && first.constant >= 0 &&
           first.constant <= whole.blocks - (side.columns ? region.columns : region.rows);
  }

  /// Returns true if both sides move in step or can be made to.
  bool tied(const Side& a, const Side& b) {
    if (stays(a) && stays(b)) {  // true for most operands
      return true;
    }
    const std::optional<Rotation> left = inside(a);
    const std::optional<Rotation> right = inside(b);
    if (!left || !right || left == right) {
      return left && right;
    }
    for (std::size_t axis = 0; axis < axes(); ++axis) {
      const std::int32_t step = left->step[axis] != 0 ? left->step[axis] : right->step[axis];
      if ((left->step[axis] != step && !moved(a, axis, step)) || (right->step[axis] != step && !moved(b, axis, step))) {
        return false;
      }
    }
    return true;
  }

  /// Makes the blocks of a side, which an axis does not move yet, move by `step`. The next pass verifies it.
  bool moved(const Side& side, std::size_t axis, std::int32_t step) {
    if (side.columns || side.regions.size() == 1) {
      return std::all_of(side.regions.begin(), side.regions.end(), [&](const Region& region) {
        return moved(direction(region, side.columns), axis, std::int64_t{step} * side.times);
      });
    }
    const std::vector<Place> places = places_of(side.regions);
    const auto distance = static_cast<std::size_t>(std::abs(step));
    if (distance >= places.size() || places[distance] == places[0]) {
      return false;
    }
    const bool across = places[distance].row == places[0].row;
    return moved(direction(side.regions.front(), across), axis,
                 across ? places[distance].column - places[0].column : places[distance].row - places[0].row);
  }
  bool moved(Direction& direction, std::size_t axis, std::int64_t step) {
    changed_ = true;
    return direction.rotation.step[axis] == 0 && direction.move(program_.mesh, axis, step);
  }

  bool tensors() {
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      if (!follows(TensorId{static_cast<std::int32_t>(i)}, program_.tensors[i])) {
        return false;
      }
    }
    return true;
  }

  /// Checks that the labels of a tensor move like the labels of the tensors from which it is computed.
  bool follows(TensorId id, const Tensor& tensor) {
    [[maybe_unused]] const auto& [name, row, column, dtype, definition, of, times, function, causal, transpose_a,
                                  transpose_b] = tensor;
    if (tensor.definition == Tensor::Definition::input) {
      return true;
    }
    const Region region = whole(id);
    const Region a = whole(tensor.a);
    const Operand result{&region, 1};
    const Operand left{&a, 1};
    if (tensor.definition == Tensor::Definition::product) {
      const Region b = whole(tensor.b);
      const Operand right{&b, 1};
      return region.rows == (tensor.transpose_a ? a.columns : a.rows) &&
             region.columns == (tensor.transpose_b ? b.rows : b.columns) &&
             tied(rows(result), along_m(left, tensor.transpose_a)) &&
             tied(columns(result), along_n(right, tensor.transpose_b)) &&
             tied(along_m(left, !tensor.transpose_a), along_n(right, !tensor.transpose_b));
    }
    if (tensor.definition == Tensor::Definition::attention) {
      return region.rows == a.rows && region.columns == a.columns && tied(rows(result), rows(left)) &&
             tied(columns(result), columns(left));
    }
    const std::int32_t width = tensor.function == Function::swiglu ? 2 : 1;
    if (region.rows != a.rows || width * region.columns != a.columns || !tied(rows(result), rows(left)) ||
        !tied(columns(result), {left, true, width})) {
      return false;
    }
    if (tensor.function != Function::residual) {
      return true;
    }
    const Region b = whole(tensor.b);
    const Operand other{&b, 1};
    return region.rows == b.rows && region.columns == b.columns && tied(rows(result), rows(other)) &&
           tied(columns(result), columns(other));
  }

  /// Checks that every initial and final cell moves together with its label.
  bool contents() {
    for (const auto* list : {&program_.initial, &program_.final}) {
      for (const Content& content : *list) {
        const Region labels = label(content.tensor, content);
        const Operand label_side{&labels, 1};
        const Operand cell_side{&content.here, 1};
        if (!tied(rows(cell_side), rows(label_side)) || !tied(columns(cell_side), columns(label_side))) {
          return false;
        }
      }
    }
    return true;
  }

  /// Returns true if every region keeps its contents in place: its position in the buffer may move, but nothing moves
  /// inside it.
  [[nodiscard]] bool all_still() const {
    return std::all_of(program_.regions.begin(), program_.regions.end(), [&](const Region& region) {
      if (!refers(region)) {
        return false;
      }
      const Moves& grid = symmetry_.grid(region);
      return still_inside(program_.mesh, {region.row, region.rows}, grid.rows) &&
             still_inside(program_.mesh, {region.column, region.columns}, grid.columns);
    });
  }

  /// Operands whose contents stay in place move in step, so if this is true of all operands, most ops need no check.
  bool ops() {
    still_ = all_still();
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      if (still_ && op.kind != OpKind::attention && op.kind != OpKind::collective) {
        continue;
      }
      [[maybe_unused]] const auto& [kind, purpose, lane, shape_id, waits, inputs, outputs, positions, where] = op;
      const Shape& shape = program_.shapes[op.shape];
      bool holds = false;
      switch (op.kind) {
        case OpKind::gemm: holds = multiplies(op, std::get<GemmShape>(shape)); break;
        case OpKind::attention: holds = attends(op, std::get<AttentionShape>(shape)); break;
        case OpKind::elementwise: holds = maps(op, std::get<ElementwiseShape>(shape)); break;
        case OpKind::exchange: holds = exchanges(op, matching_.receive_of_send[i]); break;
        case OpKind::collective: holds = collects(op, std::get<CollectiveShape>(shape)); break;
      }
      if (!holds) {
        return false;
      }
    }
    return true;
  }

  bool tied(Operand a, Operand b) { return tied(rows(a), rows(b)) && tied(columns(a), columns(b)); }

  /// Returns the rows of op(a), or the columns of op(b).
  static Side along_m(Operand a, bool transposed) { return transposed ? columns(a) : rows(a); }
  static Side along_n(Operand b, bool transposed) { return transposed ? rows(b) : columns(b); }

  bool multiplies(const Op& op, const GemmShape& shape) {
    [[maybe_unused]] const auto& [m, n, k, accumulate, dtype, accumulator, kernel_m, kernel_n, transpose_a, transpose_b,
                                  out] = shape;
    const Operand a = input(op, 0);
    const Operand b = input(op, 1);
    return tied(along_m(a, transpose_a), rows(output(op))) && tied(along_n(b, transpose_b), columns(output(op))) &&
           tied(along_m(a, !transpose_a), along_n(b, !transpose_b));
  }

  /// Checks that the keys are the rows of a sequence, and that the positions of the queries move like the keys.
  bool attends(const Op& op, const AttentionShape& shape) {
    [[maybe_unused]] const auto& [queries, key_extent, columns_out, qkv, batch, head, causal, dtype] = shape;
    const Operand keys = input(op, 1);
    const std::optional<Rotation> moves = inside(rows(keys));
    return moves && tied(input(op, 0), output(op)) && tied(columns(keys), columns(output(op))) &&
           positions_follow(op, {shape.keys.blocks, *moves});
  }
  bool positions_follow(const Op& op, const Direction& sequence) {
    const std::span<const Index> positions = program_.positions_of(op);
    std::int32_t above = 0;
    const Operand queries = input(op, 0);
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const Index position = positions.empty() ? Index(above) : positions[i];
      const auto along = rotation_inside(program_.mesh, {position, queries[i].rows}, sequence);
      if (!along || along != inside(rows(queries.subspan(i, 1)))) {
        return false;
      }
      above += queries[i].rows;
    }
    return true;
  }

  bool maps(const Op& op, const ElementwiseShape& shape) {
    const Operand out = output(op);
    if (!inside(rows(out)) || !inside(columns(out))) {
      return false;
    }
    for (std::size_t i = 0; i < program_.inputs_of(op).size(); ++i) {
      if (!tied(rows(input(op, i)), rows(out)) ||
          !tied({input(op, i), true, shape.function == Function::swiglu ? 2 : 1}, columns(out))) {
        return false;
      }
    }
    return true;
  }

  /// `receiver` is the op that receives the data that `op` sends; -1 when `op` only receives. A credit carries no data.
  bool exchanges(const Op& op, std::int32_t receiver) {
    return receiver < 0 || op.inputs.count == 0 ||
           tied(input(op, 0), output(program_.ops[static_cast<std::size_t>(receiver)]));
  }

  /// Checks a collective. If its parts belong to ranks, the digit of these parts rotates with the ranks.
  bool collects(const Op& op, const CollectiveShape& shape) {
    Side in = rows(input(op, 0));
    Side out = rows(output(op));
    const std::int32_t ranks = extent(static_cast<std::size_t>(shape.axis));
    const std::int32_t part = shape.rows.blocks / ranks;
    const bool splits_input = shape.kind == CollectiveKind::reduce_scatter || shape.kind == CollectiveKind::all_to_all;
    const bool joins_output = shape.kind == CollectiveKind::all_gather || shape.kind == CollectiveKind::all_to_all;
    const std::int64_t cells = std::int64_t{shape.rows.blocks} * shape.columns.blocks;
    if (!splits_input && !joins_output && cells * ranks > max_cells) {
      return false;  // rank 0 would receive too much data to prove
    }
    if ((splits_input && !counts_ranks(in, static_cast<std::size_t>(shape.axis), part)) ||
        (joins_output && !counts_ranks(out, static_cast<std::size_t>(shape.axis), part))) {
      return false;
    }
    return tied(in, out) && tied(columns(in.regions), columns(out.regions));
  }

  /// Returns true if the side's digit of `part` blocks moves with `axis` or can be made to. Excludes the digit from
  /// comparisons.
  bool counts_ranks(Side& side, std::size_t axis, std::int32_t part) {
    if (extent(axis) == 1) {
      return true;
    }
    const std::optional<Rotation> rotation = inside(side);
    side.counted = static_cast<int>(axis);
    return rotation && (rotation->step[axis] == part || (rotation->step[axis] == 0 && moved(side, axis, part)));
  }

  const Program& program_;
  const Matching& matching_;
  Symmetry symmetry_;
  bool changed_ = false;
  bool still_ = false;  // result of all_still() in the last pass over the ops
};

std::optional<Symmetry> symmetry_of(const Program& program, const Matching& matching) {
  return Symmetry::Decision(program, matching).symmetry();
}

}  // namespace commfuse
