// SPDX-License-Identifier: Apache-2.0
#include "model/proof/rotation.h"

#include <cstdlib>

namespace commfuse {

namespace {

/// Returns the number of blocks after which the digit of an axis repeats. Requires Direction::move() to have accepted
/// `step`.
std::int32_t period(const Mesh& mesh, std::size_t axis, std::int32_t step) {
  return std::abs(step) * mesh.axes[axis].extent;
}

/// Normalizes a step: on an axis of two ranks, both directions are the same.
std::int64_t normal(std::int32_t extent, std::int64_t step) { return extent == 2 ? std::abs(step) : step; }

/// Start of a span on rank 0, and the part of it that comes from no term. A term is the digit of its axis times its
/// unit; if the scale is negative, the digit counts down from the largest digit.
struct Start {
  std::int64_t position = 0;
  std::int64_t rest = 0;
};
/// Returns nullopt if a term of the index and the direction disagree.
std::optional<Start> start_of(const Mesh& mesh, const Index& first, const Rotation& rotation) {
  Start start{first.constant, first.constant};
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    const IndexTerm& term = first.terms[axis];
    const std::int32_t extent = mesh.axes[axis].extent;
    if (term.scale == 0 || extent == 1) {
      continue;
    }
    const std::int64_t scale = term.scale;
    const std::int64_t step = rotation.step[axis];
    if (normal(extent, term.sign() * scale) != step || std::abs(scale) != std::abs(step)) {
      return std::nullopt;
    }
    start.position += scale * wrapped(term.offset(), extent);
    start.rest += scale < 0 ? scale * (extent - 1) : 0;
  }
  return start;
}

}  // namespace

Turn inverse(const Mesh& mesh, const Turn& turn) {
  Turn back{};
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    back[axis] = turn[axis] == 0 ? 0 : mesh.axes[axis].extent - turn[axis];
  }
  return back;
}

Cycle Rotation::cycle(const Mesh& mesh, std::size_t axis, const Turn& turn) const {
  if (step[axis] == 0) {
    return {};
  }
  const std::int32_t whole = period(mesh, axis, step[axis]);
  const std::int32_t by = step[axis] * turn[axis];
  return {whole, by < 0 ? by + whole : by};
}

std::int32_t Rotation::moved(const Mesh& mesh, std::int32_t place, const Turn& turn) const {
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (step[axis] != 0) {
      place = cycle(mesh, axis, turn).at(place);
    }
  }
  return place;
}

bool Direction::move(const Mesh& mesh, std::size_t axis, std::int64_t step) {
  step = normal(mesh.axes[axis].extent, step);
  if (rotation.step[axis] != 0) {
    return rotation.step[axis] == step;
  }
  const std::int64_t unit = std::abs(step);
  const std::int64_t whole = unit * mesh.axes[axis].extent;
  if (blocks % whole != 0) {
    return false;
  }
  for (std::size_t other = 0; other < mesh.axes.size(); ++other) {
    const std::int32_t other_unit = std::abs(rotation.step[other]);
    if (other_unit != 0 && unit % period(mesh, other, other_unit) != 0 && other_unit % whole != 0) {
      return false;
    }
  }
  rotation.step[axis] = static_cast<std::int32_t>(step);
  return true;
}

std::optional<Rotation> moving_inside(const Mesh& mesh, const Span& span, const Direction& direction) {
  const std::optional<Start> start = start_of(mesh, span.first, direction.rotation);
  if (!start || start->rest < 0 || start->position < 0 || start->position > direction.blocks - span.count) {
    return std::nullopt;
  }
  Rotation inside;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    const std::int32_t step = direction.rotation.step[axis];
    if (step == 0) {
      continue;
    }
    if (span.first.terms[axis].scale != 0) {  // one unit is chosen: only the terms determine this digit
      const std::int64_t unit = std::abs(step);
      const std::int64_t other_digits = start->rest == 0 ? 0 : start->rest / unit % mesh.axes[axis].extent;
      const std::int64_t inside_unit = unit == 1 ? 0 : start->position % unit;
      if (other_digits != 0 || inside_unit > unit - span.count) {
        return std::nullopt;
      }
    } else {
      const std::int32_t whole = period(mesh, axis, step);
      if (start->position % whole != 0 || span.count % whole != 0) {
        return std::nullopt;
      }
      inside.step[axis] = step;
    }
  }
  return inside;
}

}  // namespace commfuse
