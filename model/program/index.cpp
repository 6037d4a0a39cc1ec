// SPDX-License-Identifier: Apache-2.0
#include "model/program/index.h"

#include "model/check.h"

namespace commfuse {

Index along(const Mesh& mesh, int axis, std::int32_t offset) {
  const auto axis_index = static_cast<std::size_t>(axis);
  check(axis_index < mesh.axes.size(), "an index names an axis of the mesh");
  const std::int32_t extent = mesh.axes[axis_index].extent;
  Index index;
  index.terms[axis_index] = {1, wrapped(offset, extent)};
  return index;
}

Index operator+(Index index, const Index& other) {
  index.constant += other.constant;
  for (std::size_t axis = 0; axis < index.terms.size(); ++axis) {
    if (other.terms[axis].scale != 0) {
      check(index.terms[axis].scale == 0, "an index has one term per axis");
      index.terms[axis] = other.terms[axis];
    }
  }
  return index;
}

bool Predicate::holds(const Coordinates& coordinates) const {
  const std::int32_t coordinate = coordinates[static_cast<std::size_t>(axis)];
  switch (relation) {
    case Relation::always: return true;
    case Relation::equal: return coordinate == value;
    case Relation::not_equal: return coordinate != value;
    case Relation::less: return coordinate < value;
    case Relation::at_least: return coordinate >= value;
  }
  return true;
}

}  // namespace commfuse
