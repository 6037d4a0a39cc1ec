// SPDX-License-Identifier: Apache-2.0
// Positions that depend on the rank: constant + sum of scale * ((sign * coordinate + offset) mod extent), one term per
// axis.
#pragma once

#include <array>
#include <cstdint>

#include "model/program/mesh.h"

namespace commfuse {

/// Returns number mod extent, inside [0, extent). In most cases the number is already inside, or at most one extent
/// below, and a comparison is faster than a division.
constexpr std::int32_t wrapped(std::int32_t number, std::int32_t extent) {
  const std::int32_t near = number < 0 ? number + extent : number;
  if (near >= 0 && near < extent) {
    return near;
  }
  const std::int32_t rest = number % extent;
  return rest < 0 ? rest + extent : rest;
}

/// scale * ((sign * coordinate + offset) mod extent). The offset stays inside [0, extent), the sign is 1 or -1. Sign
/// and offset share an integer, because large programs consist mostly of these terms.
class IndexTerm {
 public:
  constexpr IndexTerm() = default;
  // NOLINTNEXTLINE(bugprone-easily-swappable-parameters): the numbers are in the order of the formula above
  constexpr IndexTerm(std::int32_t factor, std::int32_t offset, int sign = 1)
      : scale(factor), start_(sign < 0 ? ~offset : offset) {}

  [[nodiscard]] constexpr std::int32_t offset() const { return start_ < 0 ? ~start_ : start_; }
  [[nodiscard]] constexpr int sign() const { return start_ < 0 ? -1 : 1; }
  friend bool operator==(const IndexTerm&, const IndexTerm&) = default;

  std::int32_t scale = 0;  // 0: no term for this axis

 private:
  std::int32_t start_ = 0;  // the offset; its complement if the sign is -1
};

/// A position in whole blocks, the same formula on every rank.
struct Index {
  std::int32_t constant = 0;
  std::array<IndexTerm, max_axes> terms{};

  // NOLINTNEXTLINE(google-explicit-constructor,hicpp-explicit-conversions): most indices are plain numbers
  constexpr Index(std::int32_t value = 0) : constant(value) {}

  /// Returns true if the position is the same on every rank.
  [[nodiscard]] constexpr bool fixed() const { return (terms[0].scale | terms[1].scale | terms[2].scale) == 0; }
  [[nodiscard]] std::int32_t at(const Mesh& mesh, const Coordinates& coordinates) const {
    if (fixed()) {
      return constant;
    }
    std::int32_t value = constant;
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
      const IndexTerm& term = terms[axis];
      if (term.scale != 0) {
        const std::int32_t extent = mesh.axes[axis].extent;
        value += term.scale * wrapped(term.sign() * coordinates[axis] + term.offset(), extent);
      }
    }
    return value;
  }

  friend bool operator==(const Index&, const Index&) = default;
  friend constexpr Index operator+(Index index, std::int32_t more) {
    index.constant += more;
    return index;
  }
  friend constexpr Index operator*(Index index, std::int32_t factor) {
    if (factor == 1) {
      return index;
    }
    index.constant *= factor;
    for (IndexTerm& term : index.terms) {
      term.scale *= factor;
    }
    return index;
  }
  friend constexpr Index operator-(std::int32_t minuend, const Index& index) { return index * -1 + minuend; }
};

/// Returns (coordinate + offset) mod extent on one axis, with the offset brought into [0, extent).
Index along(const Mesh& mesh, int axis, std::int32_t offset = 0);
/// Returns the sum of two indices, whose terms must be on different axes: 8*node + tp.
Index operator+(Index index, const Index& other);

/// Comparison of a coordinate with a value. `always` compares nothing.
enum class Relation : std::uint8_t { always, equal, not_equal, less, at_least };
struct Predicate {
  Relation relation = Relation::always;
  std::int8_t axis = 0;
  std::int32_t value = 0;
  [[nodiscard]] bool holds(const Coordinates& coordinates) const;
  friend bool operator==(const Predicate&, const Predicate&) = default;
};

}  // namespace commfuse
