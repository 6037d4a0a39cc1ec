// SPDX-License-Identifier: Apache-2.0
// What becomes of a position when all ranks turn: the arithmetic that rotation symmetry is decided and used with.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/program/index.h"
#include "model/program/mesh.h"

namespace commfuse {

/// How far every coordinate goes up, wrapping around: inside [0, extent) on every axis. The rank at these coordinates
/// is where rank 0 comes to.
using Turn = Coordinates;

/// The turn that undoes another.
Turn inverse(const Mesh& mesh, const Turn& turn);

/// Positions go up by `by` blocks inside each `period` blocks from a multiple of the period; by lies inside [0,
/// period).
struct Cycle {
  std::int32_t period = 1;
  std::int32_t by = 0;

  [[nodiscard]] std::int32_t at(std::int32_t place) const {
    const std::int32_t inside = wrapped(place, period);
    const std::int32_t moved = inside + by;
    return place - inside + (moved < period ? moved : moved - period);
  }
};

/// How positions along a direction (the rows or the columns of a buffer, a tensor or an operand) move when all ranks
/// turn. While the coordinate on an axis goes up by one, a position goes up by the step of that axis and stays inside
/// its period, the |step| * extent blocks between two multiples of that: one digit of the position rotates. Rows that
/// belong to ranks by 8*node+tp have the steps 8 and 1.
struct Rotation {
  std::array<std::int32_t, max_axes> step{};  // by axis; 0: nothing moves. On an axis of two ranks never negative

  [[nodiscard]] bool still() const { return (step[0] | step[1] | step[2]) == 0; }
  /// The share of one axis in a turn.
  [[nodiscard]] Cycle cycle(const Mesh& mesh, std::size_t axis, const Turn& turn) const;
  /// Where `place` comes to.
  [[nodiscard]] std::int32_t at(const Mesh& mesh, std::int32_t place, const Turn& turn) const {
    return still() ? place : moved(mesh, place, turn);
  }

  friend bool operator==(const Rotation&, const Rotation&) = default;

 private:
  [[nodiscard]] std::int32_t moved(const Mesh& mesh, std::int32_t place, const Turn& turn) const;
};

/// So many blocks and how they move.
struct Direction {
  std::int32_t blocks = 1;
  Rotation rotation;

  /// Makes an axis of more than one rank move the blocks by `step`, which is not 0. False when it moves them otherwise
  /// already, or when the steps do not make a rotation: whole periods fill the blocks and the digits of different axes
  /// lie apart.
  [[nodiscard]] bool move(const Mesh& mesh, std::size_t axis, std::int64_t step);
};

/// A run of blocks of a direction, on every rank its own.
struct Span {
  const Index& first;
  std::int32_t count = 1;
};

/// How the blocks of a span move inside it, counted from its first. Nothing unless on every rank the span lies inside
/// the direction and is what comes there of rank 0's when all ranks turn. It is, when each digit that moves is either
/// chosen by a term of the index with the step of that axis, or left whole.
std::optional<Rotation> moving_inside(const Mesh& mesh, const Span& span, const Direction& direction);
/// Whether it is one block of a direction that one ring of ranks shares, block by block: rank r has block r + offset.
inline bool one_of_a_ring(const Mesh& mesh, const Span& span, const Direction& direction) {
  const IndexTerm& term = span.first.terms[0];
  return mesh.axes.size() == 1 && direction.rotation.step[0] == 1 && term.scale == 1 && term.sign() == 1 &&
         span.first.constant == 0 && span.count == 1 && term.offset() < mesh.axes[0].extent &&
         term.offset() < direction.blocks;
}
/// Whether it is there and nothing moves inside it.
inline bool still_inside(const Mesh& mesh, const Span& span, const Direction& direction) {
  if (!direction.rotation.still() || !span.first.fixed()) {  // of those mostly the first is at hand
    return one_of_a_ring(mesh, span, direction) || moving_inside(mesh, span, direction) == Rotation{};
  }
  return span.first.constant >= 0 && span.first.constant <= direction.blocks - span.count;
}
inline std::optional<Rotation> rotation_inside(const Mesh& mesh, const Span& span, const Direction& direction) {
  if (!direction.rotation.still() || !span.first.fixed()) {
    return moving_inside(mesh, span, direction);
  }
  const std::int32_t first = span.first.constant;  // as of most spans: only the bounds are left to look at
  return first >= 0 && first <= direction.blocks - span.count ? std::optional(Rotation{}) : std::nullopt;
}

}  // namespace commfuse
