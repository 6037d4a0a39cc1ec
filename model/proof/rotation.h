// SPDX-License-Identifier: Apache-2.0
// Movement of positions when all ranks turn: the arithmetic on which rotation symmetry is based.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/program/index.h"
#include "model/program/mesh.h"

namespace commfuse {

/// Increase of every coordinate, inside [0, extent) on every axis. These are also the coordinates to which rank 0
/// moves.
using Turn = Coordinates;

/// Returns the turn that reverses `turn`.
Turn inverse(const Mesh& mesh, const Turn& turn);

/// Positions increase by `by` blocks, modulo `period`, inside each period; `by` is in [0, period).
struct Cycle {
  std::int32_t period = 1;
  std::int32_t by = 0;

  [[nodiscard]] std::int32_t at(std::int32_t place) const {
    const std::int32_t inside = wrapped(place, period);
    const std::int32_t moved = inside + by;
    return place - inside + (moved < period ? moved : moved - period);
  }
};

/// Movement of positions along a direction (the rows or the columns of a buffer, a tensor or an operand) when all ranks
/// turn. When the coordinate on an axis increases by one, a position increases by the step of that axis and stays
/// inside its period, the |step| * extent blocks between two multiples of that number: one digit of the position
/// rotates. Rows that are assigned to ranks by 8*node+tp have the steps 8 and 1.
struct Rotation {
  std::array<std::int32_t, max_axes> step{};  // by axis; 0 if nothing moves; never negative on an axis of two ranks

  [[nodiscard]] bool still() const { return (step[0] | step[1] | step[2]) == 0; }
  /// Returns the cycle by which one axis contributes to a turn.
  [[nodiscard]] Cycle cycle(const Mesh& mesh, std::size_t axis, const Turn& turn) const;
  /// Returns the position to which `place` moves.
  [[nodiscard]] std::int32_t at(const Mesh& mesh, std::int32_t place, const Turn& turn) const {
    return still() ? place : moved(mesh, place, turn);
  }

  friend bool operator==(const Rotation&, const Rotation&) = default;

 private:
  [[nodiscard]] std::int32_t moved(const Mesh& mesh, std::int32_t place, const Turn& turn) const;
};

/// A number of blocks and their movement.
struct Direction {
  std::int32_t blocks = 1;
  Rotation rotation;

  /// Makes an axis move the blocks by `step`. Requires `axis` to have more than one rank, and `step` not to be 0.
  /// Returns false if the blocks already move in a different way, or if the steps do not make a rotation: whole periods
  /// must fill the blocks, and the digits of different axes must not overlap.
  [[nodiscard]] bool move(const Mesh& mesh, std::size_t axis, std::int64_t step);
};

/// A run of blocks of a direction that may differ between ranks.
struct Span {
  const Index& first;
  std::int32_t count = 1;
};

/// Returns how the blocks of a span move inside it, counted from its first block. Returns nullopt unless on every rank
/// the span lies inside the direction and is the image of rank 0's span when all ranks turn. That holds if each digit
/// that moves is either chosen by a term of the index with the step of that axis, or left whole.
std::optional<Rotation> moving_inside(const Mesh& mesh, const Span& span, const Direction& direction);
/// Returns true if the span is one block of a direction that one ring of ranks shares, block by block: rank r has block
/// r + offset.
inline bool one_of_a_ring(const Mesh& mesh, const Span& span, const Direction& direction) {
  const IndexTerm& term = span.first.terms[0];
  return mesh.axes.size() == 1 && direction.rotation.step[0] == 1 && term.scale == 1 && term.sign() == 1 &&
         span.first.constant == 0 && span.count == 1 && term.offset() < mesh.axes[0].extent &&
         term.offset() < direction.blocks;
}
/// Returns true if the span lies inside the direction and nothing moves inside it.
inline bool still_inside(const Mesh& mesh, const Span& span, const Direction& direction) {
  if (!direction.rotation.still() || !span.first.fixed()) {  // one_of_a_ring handles most cases
    return one_of_a_ring(mesh, span, direction) || moving_inside(mesh, span, direction) == Rotation{};
  }
  return span.first.constant >= 0 && span.first.constant <= direction.blocks - span.count;
}
inline std::optional<Rotation> rotation_inside(const Mesh& mesh, const Span& span, const Direction& direction) {
  if (!direction.rotation.still() || !span.first.fixed()) {
    return moving_inside(mesh, span, direction);
  }
  const std::int32_t first = span.first.constant;  // the usual case: only the bounds need a check
  return first >= 0 && first <= direction.blocks - span.count ? std::optional(Rotation{}) : std::nullopt;
}

}  // namespace commfuse
