// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/stage.h"

#include "model/check.h"

namespace commfuse {

std::int32_t ShardAxes::ranks(const Mesh& mesh) const {
  const std::int32_t across = outer ? mesh.axes[static_cast<std::size_t>(*outer)].extent : 1;
  return across * mesh.axes[static_cast<std::size_t>(inner)].extent;
}

Index ShardAxes::place(const Mesh& mesh, const RingSteps& steps) const {
  check(outer || steps.outer == 0, "only nested rings go across nodes");
  const Index inside = along(mesh, inner, steps.inner);
  const std::int32_t width = mesh.axes[static_cast<std::size_t>(inner)].extent;
  return outer ? inside + along(mesh, *outer, steps.outer) * width : inside;
}

Index Stage::shard(const RingSteps& steps) const { return ShardAxes{axis, outer}.place(builder.mesh(), steps) * cuts; }

Region Stage::rows_of(BufferId buffer, const Index& first, std::int32_t count) const {
  return builder.rows_of(buffer, first * grain, count * grain);
}

BufferId Stage::scratch(const std::string& what, std::int32_t count, BufferId like) const {
  const Buffer shape = builder.buffer_of(like);  // a copy, because adding a buffer may move existing ones
  return builder.buffer(name + "." + what, BufferRole::scratch, {shape.rows.dimension, count * grain}, shape.columns,
                        shape.dtype);
}

BufferId Stage::scratch(const std::string& what, std::int32_t count, Extent columns, DType dtype) const {
  const DimensionId tokens = builder.buffer_of(output).rows.dimension;
  return builder.buffer(name + "." + what, BufferRole::scratch, {tokens, count * grain}, columns, dtype);
}

OpId Stage::multiply(const GemmSpec& spec) const {
  if (attend) {
    attend(spec.a);
  }
  return builder.gemm(spec);
}

Operand slice_of_all_shards(const Stage& stage, BufferId buffer, std::int32_t i) {
  Operand rows;
  for (std::int32_t rank = 0; rank < stage.ranks; ++rank) {
    rows.push_back(stage.rows_of(buffer, rank * stage.cuts + i));
  }
  return rows;
}

}  // namespace commfuse
