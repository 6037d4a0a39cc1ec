// SPDX-License-Identifier: Apache-2.0
#include "model/program/mesh.h"

#include <algorithm>

#include "model/check.h"
#include "model/program/index.h"

namespace commfuse {

namespace {
std::size_t at(int axis) { return static_cast<std::size_t>(axis); }
}  // namespace

std::int32_t Mesh::ranks() const {
  std::int32_t product = 1;
  for (const Axis& axis : axes) {
    product *= axis.extent;
  }
  return product;
}

std::int32_t Mesh::stride(int axis) const {
  std::int32_t product = 1;
  for (std::size_t later = at(axis) + 1; later < axes.size(); ++later) {
    product *= axes[later].extent;
  }
  return product;
}

Coordinates Mesh::coordinates(Rank rank) const {
  Coordinates result{};
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    result[axis] = rank % axes[axis].extent;
    rank /= axes[axis].extent;
  }
  return result;
}

Rank Mesh::shifted(Rank rank, int axis, std::int32_t shift) const {
  const std::int32_t extent = axes[at(axis)].extent;
  const std::int32_t from = rank / stride(axis) % extent;
  const std::int32_t to = wrapped(from + shift, extent);
  return member(rank, axis, to);
}

Rank Mesh::member(Rank rank, int axis, std::int32_t coordinate) const {
  check(coordinate >= 0 && coordinate < axes[at(axis)].extent, "a coordinate lies inside its axis");
  const std::int32_t own_coordinate = rank / stride(axis) % axes[at(axis)].extent;
  return rank + (coordinate - own_coordinate) * stride(axis);
}

std::optional<FoldedMesh> folded(const Mesh& mesh, Rank ranks) {
  FoldedMesh result{.ranks = ranks};
  std::int32_t stride = 1;
  for (std::size_t axis = mesh.axes.size(); axis-- > 0;) {
    const std::int32_t extent = mesh.axes[axis].extent;
    const std::int32_t remaining = ranks / stride;
    if (remaining <= 0 || (remaining % extent != 0 && extent % remaining != 0)) {
      return std::nullopt;
    }
    result.extents[axis] = std::min(remaining, extent);
    result.strides[axis] = stride;
    stride *= result.extents[axis];
  }
  return stride == ranks ? std::optional(result) : std::nullopt;
}

}  // namespace commfuse
