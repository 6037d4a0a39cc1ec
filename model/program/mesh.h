// SPDX-License-Identifier: Apache-2.0
// The ranks that take part, as a mesh of named axes with extents. A rank has a coordinate on every axis.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace commfuse {

/// Row-major position of a coordinate in its mesh, the last axis fastest: in {node: 2, tp: 8}, rank = 8*node + tp.
using Rank = std::int32_t;

inline constexpr int max_axes = 3;
using Coordinates = std::array<std::int32_t, max_axes>;

struct Axis {
  std::string name;
  std::int32_t extent = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// Requires 1 to max_axes axes, every extent >= 1.
struct Mesh {
  std::vector<Axis> axes;

  [[nodiscard]] std::int32_t ranks() const;
  /// Returns the distance in rank ids between neighbours on `axis`.
  [[nodiscard]] std::int32_t stride(int axis) const;
  [[nodiscard]] Coordinates coordinates(Rank rank) const;
  /// Returns the rank whose coordinate on `axis` is `shift` ahead, wrapping around; the other coordinates stay.
  [[nodiscard]] Rank shifted(Rank rank, int axis, std::int32_t shift) const;
  /// Returns the member of `rank`'s group along `axis` at `coordinate`.
  [[nodiscard]] Rank member(Rank rank, int axis, std::int32_t coordinate) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;
};

/// The first ranks of a mesh, each of which represents all ranks that have the same id modulo `ranks`. Inner axes are
/// whole, at most one axis keeps a divisor of its extent, and outer axes keep one coordinate. So if every rank does the
/// same relative to its own position, a shift along an axis of the mesh is the same shift along that axis of the folded
/// mesh.
struct FoldedMesh {
  Rank ranks = 1;
  Coordinates extents{};
  Coordinates strides{};
};
/// Returns nullopt when that many ranks cannot represent the whole mesh.
std::optional<FoldedMesh> folded(const Mesh& mesh, Rank ranks);

}  // namespace commfuse
