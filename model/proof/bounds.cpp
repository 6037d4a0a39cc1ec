// SPDX-License-Identifier: Apache-2.0
#include "model/proof/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/program/lower.h"
#include "model/program/matching.h"
#include "model/proof/effort.h"

namespace commfuse {

namespace {

constexpr std::int32_t no_op = -1'000'000;  // subject of findings that concern no op

using Extents = std::pair<Extent, Extent>;  // rows, columns

template <class Id, class Table>
bool names(Id id, const Table& table) {
  return static_cast<std::int32_t>(id) >= 0 && position(id) < table.size();
}

template <class Pool>
bool lies_in(Slice slice, const Pool& pool) {
  return std::size_t{slice.first} + slice.count <= pool.size();
}

class Bounds {
 public:
  Bounds(const Program& program, Findings& findings)
      : program_(program),
        findings_(findings),
        lanes_(program.lanes.size()),
        shapes_(program.shapes.size()),
        axes_(program.mesh.axes.size()),
        pools_are_valid_(pools_are_valid()),
        wanted_(shapes_) {
    for (const Shape& shape : program.shapes) {
      shape_is_valid_.push_back(is_valid(shape));
    }
    for (const Buffer& buffer : program.buffers) {
      dimensions_.emplace_back(buffer.rows.dimension, buffer.columns.dimension);
    }
  }

  void tables(Ranks checked_ranks) {
    const auto& axes = program_.mesh.axes;
    std::int64_t ranks = 1;
    for (const Axis& axis : axes) {
      ranks = axis.extent >= 1 && ranks <= max_cells ? ranks * axis.extent : 0;
    }
    if (axes.empty() || axes.size() > max_axes || ranks < 1 || ranks > max_cells) {
      require(false, "the mesh needs one to three axes of at least one rank");
      return;
    }
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      require(fits(tensor.rows) && fits(tensor.columns) && defined_by_earlier(tensor, i),
              fmt::format("tensor {} has an invalid extent or definition", tensor.name));
    }
    std::int64_t cells = 0;
    for (const Buffer& buffer : program_.buffers) {
      require(fits(buffer.rows) && fits(buffer.columns), fmt::format("buffer {} has an invalid extent", buffer.name));
      cells = std::min(max_cells + 1, cells + std::int64_t{buffer.rows.blocks} * buffer.columns.blocks);
    }
    require(!findings_.empty() || cells * (checked_ranks == Ranks::all ? ranks : 1) <= max_cells,
            fmt::format("the buffers of all ranks have more than {} blocks; cut the dimensions into fewer blocks",
                        max_cells));
    for (const auto* contents : {&program_.initial, &program_.final}) {
      for (const Content& content : *contents) {
        require(is_valid(content.here) && names(content.tensor, program_.tensors),
                "an initial or final content refers to a buffer or tensor that does not exist");
      }
    }
  }

  /// Checks that all ops and unfused work of an attention tensor agree on its sequences and heads, which the tensor
  /// itself does not define.
  void attention() {
    std::vector<const AttentionShape*> attentions;
    for (const auto* shapes : {&program_.shapes, &program_.unfused}) {
      for (const Shape& shape : *shapes) {
        const auto* attention = std::get_if<AttentionShape>(&shape);
        if (attention != nullptr && names(attention->columns.dimension, program_.dimensions)) {
          const auto same_columns = [&](const AttentionShape* other) {
            return other->columns.dimension == attention->columns.dimension;
          };
          const auto first = std::find_if(attentions.begin(), attentions.end(), same_columns);
          require(
              first == attentions.end() || ((*first)->qkv.dimension == attention->qkv.dimension &&
                                            (*first)->batch == attention->batch && (*first)->head == attention->head),
              fmt::format("attention ops into {} take q, k and v, sequences or heads from different dimensions",
                          program_.dimensions[position(attention->columns.dimension)].name));
          attentions.push_back(attention);
        }
      }
    }
  }

  /// Checks the properties of an op that are the same on all ranks.
  void op(OpId id) {
    const Op& op = program_.ops[position(id)];
    if (!is_valid(op)) {
      findings_.add(FindingKind::bounds, static_cast<std::int32_t>(id), [&] {
        return fmt::format("{} refers to a lane, shape, operand, buffer or axis that does not exist",
                           op_in_words(program_, id));
      });
      return;
    }
    for (const OpId wait : program_.waits_of(op)) {
      if (wait < OpId{0} || wait >= id) {
        findings_.add(FindingKind::bounds, static_cast<std::int32_t>(id), [&] {
          return fmt::format("{} waits for op {}, which is not earlier", op_in_words(program_, id),
                             static_cast<std::int32_t>(wait));
        });
      }
    }
    if (!operands_fit(op)) {
      findings_.add(FindingKind::bounds, static_cast<std::int32_t>(id),
                    [&] { return fmt::format("the operands of {} do not fit its shape", op_in_words(program_, id)); });
    }
  }

  void regions(OpId id) {
    const Op& op = program_.ops[position(id)];
    for (const auto operands : {program_.inputs_of(op), program_.outputs_of(op)}) {
      for (const Slice operand : operands) {
        for (const Region& region : program_.regions_of(operand)) {
          region_inside(region, static_cast<std::int32_t>(id), op.where,
                        [&](Rank rank) { return fmt::format("{} on rank {}", op_in_words(program_, id), rank); });
        }
      }
    }
  }

  /// Checks that the queries of an attention are among its keys.
  void positions(OpId id) {
    const Op& op = program_.ops[position(id)];
    if (op.kind != OpKind::attention) {
      return;
    }
    const std::int32_t keys = std::get<AttentionShape>(program_.shapes[op.shape]).keys.blocks;
    const auto queries = program_.regions_of(program_.inputs_of(op).front());
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      const Coordinates coordinates = program_.mesh.coordinates(rank);
      const std::vector<std::int32_t> first = positions_at(program_, op, coordinates);
      for (std::size_t i = 0; i < queries.size(); ++i) {
        if (op.where.holds(coordinates) && !holds(first[i], queries[i].rows, keys)) {
          findings_.add(FindingKind::bounds, static_cast<std::int32_t>(id), [&] {
            return fmt::format("{} on rank {} has queries of block row {}, but its keys are {}",
                               op_in_words(program_, id), rank,
                               first[i] < 0 ? first[i] : first[i] + queries[i].rows - 1,
                               keys == 1 ? std::string{"0"} : fmt::format("0 to {}", keys - 1));
          });
        }
      }
    }
  }

  /// Checks a content. `i` counts the initial contents first, then the final ones.
  void content(const Content& content, std::int32_t i) {
    const std::int32_t about = -1 - i;
    region_inside(content.here, about, {}, [&](Rank rank) {
      return fmt::format("the {} content {} on rank {}", is_final(i) ? "final" : "initial", name_of(content), rank);
    });
    const Tensor& tensor = program_.tensors[position(content.tensor)];
    const Buffer& buffer = program_.buffers[position(content.here.buffer)];
    bool inside =
        buffer.rows.dimension == tensor.rows.dimension && buffer.columns.dimension == tensor.columns.dimension;
    for (Rank rank = 0; rank < program_.mesh.ranks() && inside; ++rank) {
      const Coordinates coordinates = program_.mesh.coordinates(rank);
      inside = holds(content.row.at(program_.mesh, coordinates), content.here.rows, tensor.rows.blocks) &&
               holds(content.column.at(program_.mesh, coordinates), content.here.columns, tensor.columns.blocks);
    }
    if (!inside) {
      findings_.add(FindingKind::bounds, about, [&] {
        return fmt::format("the {} content of {} lies outside tensor {}", is_final(i) ? "final" : "initial",
                           buffer.name, tensor.name);
      });
    }
  }

 private:
  void require(bool holds, const std::string& sentence) {
    if (!holds) {
      findings_.add(FindingKind::bounds, --nameless_, [&] { return sentence; });
    }
  }

  [[nodiscard]] bool is_final(std::int32_t i) const { return static_cast<std::size_t>(i) >= program_.initial.size(); }
  [[nodiscard]] const std::string& name_of(const Content& content) const {
    return program_.tensors[position(content.tensor)].name;
  }
  static bool holds(std::int32_t first, std::int32_t count, std::int32_t extent) {
    return first >= 0 && first <= extent - count;
  }

  [[nodiscard]] bool fits(Extent extent) const {
    return extent.blocks >= 1 && names(extent.dimension, program_.dimensions);
  }

  [[nodiscard]] bool defined_by_earlier(const Tensor& tensor, std::size_t i) const {
    const auto earlier = [&](TensorId id) { return static_cast<std::int32_t>(id) >= 0 && position(id) < i; };
    switch (tensor.definition) {
      case Tensor::Definition::input: return true;
      case Tensor::Definition::function:
        return earlier(tensor.a) && (tensor.function != Function::residual || earlier(tensor.b));
      case Tensor::Definition::attention:
        return earlier(tensor.a) && program_.tensors[position(tensor.a)].columns.blocks == tensor.columns.blocks;
      case Tensor::Definition::product: return earlier(tensor.a) && earlier(tensor.b) && contracts_equal(tensor);
    }
    return false;
  }

  [[nodiscard]] bool contracts_equal(const Tensor& product) const {
    const Tensor& b = program_.tensors[position(product.b)];
    return contraction_of(product, program_.tensors[position(product.a)]) == (product.transpose_b ? b.columns : b.rows);
  }

  [[nodiscard]] bool is_valid(const Region& region) const {
    return names(region.buffer, program_.buffers) && region.rows >= 1 && region.columns >= 1 &&
           region.rows <= max_cells && region.columns <= max_cells;
  }

  [[nodiscard]] bool axis_exists(std::int8_t axis) const { return axis >= 0 && static_cast<std::size_t>(axis) < axes_; }

  [[nodiscard]] bool is_valid(const Shape& shape) const {
    if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      return axis_exists(exchange->axis) && exchange->shift >= 0 &&
             exchange->shift < program_.mesh.axes[static_cast<std::size_t>(exchange->axis)].extent;
    }
    const auto* collective = std::get_if<CollectiveShape>(&shape);
    return collective == nullptr || axis_exists(collective->axis);
  }

  [[nodiscard]] bool is_valid(const Op& op) const {
    return op.lane < lanes_ && op.shape < shapes_ && lies_in(op.waits, program_.waits) &&
           lies_in(op.inputs, program_.operands) && lies_in(op.outputs, program_.operands) && positions_are_valid(op) &&
           program_.shapes[op.shape].index() == static_cast<std::size_t>(op.kind) && axis_exists(op.where.axis) &&
           shape_is_valid_[op.shape] &&
           (pools_are_valid_ ||
            (operands_are_valid(program_.inputs_of(op)) && operands_are_valid(program_.outputs_of(op))));
  }

  /// Returns true if the op has no positions, or is an attention with one position per region of queries.
  [[nodiscard]] bool positions_are_valid(const Op& op) const {
    if (op.positions.count == 0) {
      return true;
    }
    return op.kind == OpKind::attention && lies_in(op.positions, program_.positions) && op.inputs.count > 0 &&
           program_.inputs_of(op).front().count == op.positions.count;
  }

  /// Returns true if all operands and regions are valid, including unused ones. The operands of each op then need no
  /// check of their own.
  [[nodiscard]] bool pools_are_valid() const {
    return std::all_of(program_.regions.begin(), program_.regions.end(),
                       [&](const Region& region) { return is_valid(region); }) &&
           std::all_of(program_.operands.begin(), program_.operands.end(),
                       [regions = program_.regions.size()](Slice operand) {
                         return operand.count > 0 && std::size_t{operand.first} + operand.count <= regions;
                       });
  }

  [[nodiscard]] bool operands_are_valid(std::span<const Slice> operands) const {
    for (const Slice operand : operands) {
      if (operand.count == 0 || !lies_in(operand, program_.regions)) {
        return false;
      }
      for (const Region& region : program_.regions_of(operand)) {
        if (!is_valid(region)) {
          return false;
        }
      }
    }
    return true;
  }

  /// Returns true if the regions of an operand, stacked by rows, have these extents.
  [[nodiscard]] bool fits(Slice operand, const Extents& wanted) const {
    const auto& [rows, columns] = wanted;
    if (operand.count == 1) {
      const Region& only = program_.regions[operand.first];
      return only.rows == rows.blocks && only.columns == columns.blocks &&
             dimensions_[position(only.buffer)] == std::pair(rows.dimension, columns.dimension);
    }
    std::int64_t stacked = 0;
    for (const Region& region : program_.regions_of(operand)) {
      const auto& [row_dimension, column_dimension] = dimensions_[position(region.buffer)];
      if (row_dimension != rows.dimension || column_dimension != columns.dimension ||
          region.columns != columns.blocks) {
        return false;
      }
      stacked += region.rows;
    }
    return stacked == rows.blocks;
  }

  [[nodiscard]] bool operands_fit(const Op& op) {
    std::optional<std::optional<Wanted>>& known = wanted_[op.shape];
    if (!known) {
      known = expected(program_.shapes[op.shape]);
    }
    const std::optional<Wanted>& wanted = *known;
    const auto inputs = program_.inputs_of(op);
    const auto outputs = program_.outputs_of(op);
    if (!wanted || inputs.size() != wanted->inputs || outputs.size() != wanted->outputs) {
      return false;
    }
    const Extents* extents = &wanted->first;
    for (const Slice operand : inputs) {
      if (!fits(operand, *extents)) {
        return false;
      }
      extents = &wanted->others;
    }
    return outputs.empty() || fits(outputs.front(), wanted->output);
  }

  struct Wanted {
    std::size_t inputs = 0;
    Extents first, others;  // extents of the first input, and of the inputs after it
    std::size_t outputs = 1;
    Extents output;
  };
  /// Returns the operands that the shape requires; nullopt if no operands can fit the shape.
  [[nodiscard]] std::optional<Wanted> expected(const Shape& shape) const {
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      const Extents a = gemm->transpose_a ? Extents{gemm->k, gemm->m} : Extents{gemm->m, gemm->k};
      const Extents b = gemm->transpose_b ? Extents{gemm->n, gemm->k} : Extents{gemm->k, gemm->n};
      return has_valid_kernel(*gemm) ? std::optional(Wanted{2, a, b, 1, {gemm->m, gemm->n}}) : std::nullopt;
    }
    if (const auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
      return expected(*elementwise);
    }
    if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      return expected(*exchange);
    }
    if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
      return expected(*collective);
    }
    const auto& attention = std::get<AttentionShape>(shape);
    return Wanted{2,
                  {attention.queries, attention.qkv},
                  {attention.keys, attention.qkv},
                  1,
                  {attention.queries, attention.columns}};
  }
  /// Returns true if the GEMM is a separate kernel, or one of equal parts of a kernel that is cut in one direction.
  [[nodiscard]] static bool has_valid_kernel(const GemmShape& gemm) {
    const auto is_multiple = [](Extent kernel, Extent part) {
      return kernel.blocks > 0 && kernel.dimension == part.dimension && part.blocks >= 1 &&
             kernel.blocks % part.blocks == 0;
    };
    const bool cuts_rows = gemm.kernel_m != Extent{};
    const bool cuts_columns = gemm.kernel_n != Extent{};
    return !(cuts_rows && cuts_columns) && (!cuts_rows || is_multiple(gemm.kernel_m, gemm.m)) &&
           (!cuts_columns || is_multiple(gemm.kernel_n, gemm.n));
  }
  [[nodiscard]] static std::optional<Wanted> expected(const ExchangeShape& shape) {
    const Extents half{shape.rows, shape.columns};
    if (is_credit(shape)) {
      return shape.protocol == Protocol::push && half == Extents{} ? std::optional(Wanted{0, half, half, 0, half})
                                                                   : std::nullopt;
    }
    return shape.sends || shape.receives
               ? std::optional(Wanted{shape.sends ? 1U : 0U, half, half, shape.receives ? 1U : 0U, half})
               : std::nullopt;
  }
  [[nodiscard]] std::optional<Wanted> expected(const ElementwiseShape& shape) const {
    if (shape.inputs < (shape.function == Function::zero ? 0 : 1) ||
        static_cast<std::size_t>(shape.inputs) > program_.operands.size() ||
        (shape.function != Function::add && static_cast<std::size_t>(shape.inputs) != inputs_of(shape.function)) ||
        shape.columns.blocks > max_cells) {
      return std::nullopt;
    }
    Extent columns = shape.columns;
    columns.blocks *= shape.function == Function::swiglu ? 2 : 1;
    const Extents input{shape.rows, columns};
    return Wanted{static_cast<std::size_t>(shape.inputs), input, input, 1, {shape.rows, shape.columns}};
  }
  [[nodiscard]] std::optional<Wanted> expected(const CollectiveShape& shape) const {
    const std::int32_t ranks = program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
    const Extents whole{shape.rows, shape.columns};
    const Extents part{{shape.rows.dimension, shape.rows.blocks / ranks}, shape.columns};
    if (shape.kind != CollectiveKind::all_reduce && shape.rows.blocks % ranks != 0) {
      return std::nullopt;
    }
    const Extents& in = shape.kind == CollectiveKind::all_gather ? part : whole;
    return Wanted{1, in, in, 1, shape.kind == CollectiveKind::reduce_scatter ? part : whole};
  }

  template <class Who>
  void region_inside(const Region& region, std::int32_t about, const Predicate& where, const Who& who) {
    const Buffer& buffer = program_.buffers[position(region.buffer)];
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      const Coordinates coordinates = program_.mesh.coordinates(rank);
      const Rectangle rectangle = rectangle_of(program_, region, coordinates);
      if (!where.holds(coordinates) || (holds(rectangle.row, rectangle.rows, buffer.rows.blocks) &&
                                        holds(rectangle.column, rectangle.columns, buffer.columns.blocks))) {
        continue;
      }
      findings_.add(FindingKind::bounds, about, [&] {
        return fmt::format("{} reaches outside {}, which has {} x {} blocks: its region has {} x {} from ({}, {})",
                           who(rank), buffer.name, buffer.rows.blocks, buffer.columns.blocks, rectangle.rows,
                           rectangle.columns, rectangle.row, rectangle.column);
      });
    }
  }

  const Program& program_;
  Findings& findings_;
  std::size_t lanes_;
  std::size_t shapes_;
  std::size_t axes_;
  bool pools_are_valid_;
  std::vector<bool> shape_is_valid_;
  std::vector<std::pair<DimensionId, DimensionId>> dimensions_;  // by buffer: dimensions of its rows and columns
  std::vector<std::optional<std::optional<Wanted>>> wanted_;     // by shape, set when the first op uses it
  std::int32_t nameless_ = no_op;
};

}  // namespace

void check_references(const Program& program, Ranks ranks, Findings& findings) {
  Bounds bounds(program, findings);
  bounds.tables(ranks);
  if (!findings.empty()) {
    return;
  }
  bounds.attention();
  const auto count = static_cast<std::int32_t>(program.ops.size());
  for (OpId op{0}; op < OpId{count}; op = OpId{static_cast<std::int32_t>(op) + 1}) {
    bounds.op(op);
  }
}

void check_places(const Program& program, OpId op, Findings& findings) {
  Bounds bounds(program, findings);
  bounds.regions(op);
  bounds.positions(op);
}

bool all_ranks_fit(const Program& program) {
  Findings findings;
  Bounds(program, findings).tables(Ranks::all);
  return findings.empty() && all_ranks_within(program, max_effort);
}

void check_bounds(const Program& program, Findings& findings) {
  check_references(program, Ranks::all, findings);
  if (findings.empty() && !all_ranks_within(program, max_effort)) {
    findings.add(FindingKind::bounds, no_op, [] {
      return fmt::format(
          "the ops of all ranks access more than {} blocks; cut the dimensions into fewer blocks, or use fewer ranks",
          max_effort);
    });
  }
  if (!findings.empty()) {
    return;
  }
  Bounds bounds(program, findings);
  const auto count = static_cast<std::int32_t>(program.ops.size());
  for (OpId op{0}; op < OpId{count}; op = OpId{static_cast<std::int32_t>(op) + 1}) {
    bounds.regions(op);
    bounds.positions(op);
  }
  std::int32_t i = 0;
  for (const auto* contents : {&program.initial, &program.final}) {
    for (const Content& content : *contents) {
      bounds.content(content, i++);
    }
  }
}

}  // namespace commfuse
