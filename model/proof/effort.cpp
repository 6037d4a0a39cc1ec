// SPDX-License-Identifier: Apache-2.0
#include "model/proof/effort.h"

#include <algorithm>

namespace commfuse {

namespace {

constexpr std::int64_t limit = std::int64_t{1} << 62U;
constexpr std::int64_t effort_per_op = 8;       // in addition to its operands
constexpr std::int64_t effort_per_member = 16;  // per member of a collective, in addition to its operands
constexpr std::int64_t tensors_per_block = 8;   // tensors searched in the time that a block takes
constexpr std::int64_t effort_per_term = 6;     // per term of a sum, whose set of blocks is looked up

std::int64_t plus(std::int64_t a, std::int64_t b) { return a > limit - b ? limit : a + b; }
std::int64_t times(std::int64_t a, std::int64_t b) { return a != 0 && b > limit / a ? limit : a * b; }

class Effort {
 public:
  Effort(const Program& program, Ranks ranks)
      : program_(program),
        ranks_(ranks),
        lanes_(1 + static_cast<std::int64_t>(program.lanes.size())),
        naming_(1 + static_cast<std::int64_t>(program.tensors.size()) / tensors_per_block) {}

  [[nodiscard]] std::int64_t of_memory() const {
    std::int64_t sum = 0;
    for (const Buffer& buffer : program_.buffers) {
      sum = plus(sum, times(lanes_, times(buffer.rows.blocks, buffer.columns.blocks)));
    }
    for (const auto* contents : {&program_.initial, &program_.final}) {
      for (const Content& content : *contents) {
        sum = plus(sum, times(content.here.rows, content.here.columns));
      }
    }
    return sum;
  }

  [[nodiscard]] std::int64_t of(const Op& op) const {
    std::int64_t sum = plus(effort_per_op, of_work(op));
    for (const Slice operand : program_.inputs_of(op)) {
      sum = plus(sum, blocks(operand));
    }
    for (const Slice operand : program_.outputs_of(op)) {
      sum = plus(sum, times(lanes_, blocks(operand)));
    }
    return sum;
  }

 private:
  [[nodiscard]] std::int64_t blocks(Slice operand) const {
    std::int64_t sum = 0;
    for (const Region& region : program_.regions_of(operand)) {
      sum = plus(sum, times(region.rows, region.columns));
    }
    return sum;
  }

  /// Returns the effort of an op in addition to the blocks of its operands.
  [[nodiscard]] std::int64_t of_work(const Op& op) const {
    const Shape& shape = program_.shapes[op.shape];
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      return times(times(gemm->m.blocks, gemm->n.blocks), plus(times(effort_per_term, gemm->k.blocks), naming_));
    }
    if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
      return times(times(attention->queries.blocks, attention->qkv.blocks), plus(attention->keys.blocks, naming_));
    }
    if (const auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
      const std::int64_t terms = elementwise->function == Function::add ? elementwise->inputs : 0;
      return times(times(elementwise->rows.blocks, elementwise->columns.blocks),
                   plus(times(effort_per_term, terms), naming_));
    }
    const auto* collective = std::get_if<CollectiveShape>(&shape);
    return collective != nullptr && ranks_ == Ranks::first ? of_members(*collective) : 0;
  }

  /// Returns the effort for the blocks that members contribute: all blocks to an all-reduce, a part to other
  /// collectives.
  [[nodiscard]] std::int64_t of_members(const CollectiveShape& shape) const {
    const std::int64_t members = program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
    const std::int64_t given = times(shape.rows.blocks, shape.columns.blocks);
    const std::int64_t terms = shape.kind == CollectiveKind::all_reduce ? times(members, given) : given;
    return plus(times(members, effort_per_member), times(effort_per_term, terms));
  }

  const Program& program_;
  Ranks ranks_;
  std::int64_t lanes_;   // number of ops remembered per block: its last writer, and its last reader on each lane
  std::int64_t naming_;  // effort to find the tensor that an op makes
};

}  // namespace

std::int64_t effort_of(const Program& program, Ranks ranks) {
  const Effort effort(program, ranks);
  std::int64_t sum = effort.of_memory();
  for (const Op& op : program.ops) {
    sum = plus(sum, effort.of(op));
  }
  return sum;
}

bool all_ranks_within(const Program& program, std::int64_t effort) {
  return effort_of(program, Ranks::all) <= effort / program.mesh.ranks();
}

}  // namespace commfuse
