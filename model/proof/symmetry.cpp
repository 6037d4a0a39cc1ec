// SPDX-License-Identifier: Apache-2.0
#include "model/proof/symmetry.h"

#include <algorithm>
#include <cstdlib>

namespace commfuse {

Symmetry::Symmetry(const Program& program) : program_(program), buffers_(program.buffers.size()) {
  for (const Buffer& buffer : program.buffers) {
    grids_.push_back({{buffer.rows.blocks, {}}, {buffer.columns.blocks, {}}});
  }
  for (const Tensor& tensor : program.tensors) {
    grids_.push_back({{tensor.rows.blocks, {}}, {tensor.columns.blocks, {}}});
  }
}

std::optional<Rotation> Symmetry::columns_inside(std::span<const Region> operand) const {
  if (still_) {
    return Rotation{};
  }
  const std::optional<Rotation> common = common_column_rotation(operand);
  const bool pieces = !common && operand.size() > 1 && stacked(operand, true);
  return pieces ? Rotation{} : common;
}

std::optional<Rotation> Symmetry::rows_inside(std::span<const Region> operand) const {
  if (still_) {
    return Rotation{};
  }
  const auto inside = [&](const Region& region) {
    return rotation_inside(program_.mesh, {region.row, region.rows}, grid(region).rows);
  };
  if (operand.size() == 1) {
    return inside(operand.front());
  }
  const bool across = !common_column_rotation(operand);
  const bool still =
      std::all_of(operand.begin(), operand.end(), [&](const Region& region) { return inside(region) == Rotation{}; });
  return still && !across ? Rotation{} : stacked(operand, across);
}

std::optional<Rotation> Symmetry::common_column_rotation(std::span<const Region> operand) const {
  const auto inside = [&](const Region& region) {
    return rotation_inside(program_.mesh, {region.column, region.columns}, grid(region).columns);
  };
  const std::optional<Rotation> first = inside(operand.front());
  if (operand.size() == 1) {
    return first;
  }
  const bool all_equal =
      std::all_of(operand.begin() + 1, operand.end(), [&](const Region& region) { return inside(region) == first; });
  return all_equal ? first : std::nullopt;
}

/// Takes the step from row 0 of the stack and checks that all other rows follow it.
std::optional<Rotation> Symmetry::stacked(std::span<const Region> operand, bool across) const {
  const Mesh& mesh = program_.mesh;
  const Moves& moves = grid(operand.front());
  const std::vector<Place> places = places_of(operand);
  if (!std::all_of(operand.begin(), operand.end(), [&](const Region& region) {
        return region.buffer == operand.front().buffer && stays_together(region, across);
      })) {
    return std::nullopt;
  }
  Direction stack{static_cast<std::int32_t>(places.size()), {}};
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (moves.rows.rotation.step[axis] == 0 && (!across || moves.columns.rotation.step[axis] == 0)) {
      continue;
    }
    Turn by_one{};
    by_one[axis] = 1;
    const auto moved = [&](const Place& place) {
      return Place{moves.rows.rotation.at(mesh, place.row, by_one),
                   across ? moves.columns.rotation.at(mesh, place.column, by_one) : place.column};
    };
    const auto next = std::find(places.begin(), places.end(), moved(places.front()));
    if (next == places.begin() || next == places.end() || !stack.move(mesh, axis, next - places.begin())) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int32_t to = stack.rotation.at(mesh, static_cast<std::int32_t>(i), by_one);
      if (places[static_cast<std::size_t>(to)] != moved(places[i])) {
        return std::nullopt;
      }
    }
  }
  return stack.rotation;
}

/// Returns true if the region's place is the same on all ranks and the region moves in one piece: its rows, and with
/// `across` also its columns.
bool Symmetry::stays_together(const Region& region, bool across) const {
  const Moves& moves = grid(region);
  const std::int32_t column = region.column.constant;
  if (!region.row.fixed() || region.row.constant < 0 || region.row.constant > moves.rows.blocks - region.rows) {
    return false;
  }
  if (!across) {
    return true;
  }
  const auto& steps = moves.columns.rotation.step;
  return region.column.fixed() && column >= 0 && column <= moves.columns.blocks - region.columns &&
         std::all_of(steps.begin(), steps.end(), [&](std::int32_t step) {
           return step == 0 || column % std::abs(step) <= std::abs(step) - region.columns;
         });
}

std::vector<Symmetry::Place> Symmetry::places_of(std::span<const Region> operand) {
  std::vector<Place> places;
  for (const Region& region : operand) {
    for (std::int32_t row = 0; row < region.rows; ++row) {
      places.push_back({region.row.constant + row, region.column.constant});
    }
  }
  return places;
}

}  // namespace commfuse
