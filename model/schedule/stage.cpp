// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/stage.h"

#include "model/check.h"

namespace commfuse {

std::int32_t ShardAxes::ranks(const Mesh& mesh) const {
  const std::int32_t across = outer ? mesh.axes[static_cast<std::size_t>(*outer)].extent : 1;
  return across * mesh.axes[static_cast<std::size_t>(inner)].extent;
}

Index ShardAxes::place(const Mesh& mesh, std::int32_t scale, std::int32_t steps, std::int32_t nodes) const {
  check(outer || nodes == 0, "only nested rings go across nodes");
  const Index inside = along(mesh, inner, steps, scale);
  const std::int32_t width = mesh.axes[static_cast<std::size_t>(inner)].extent;
  return outer ? inside + along(mesh, *outer, nodes, scale * width) : inside;
}

Index Stage::shard(std::int32_t steps, std::int32_t nodes) const {
  return ShardAxes{axis, outer}.place(builder.mesh(), cuts, steps, nodes);
}

BufferId Stage::scratch(const std::string& what, std::int32_t tokens, BufferId like) const {
  const Buffer shape = builder.buffer_of(like);  // a copy: adding a buffer moves the others
  return builder.buffer(name + "." + what, BufferRole::scratch, {shape.rows.dimension, tokens}, shape.columns,
                        shape.dtype);
}

}  // namespace commfuse
