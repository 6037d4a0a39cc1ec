// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/symmetry.h"

#include <algorithm>

namespace commfuse {

namespace {

using Operand = std::span<const Region>;

/// All in one buffer and the same on all ranks.
bool in_fixed_places(Operand operand) {
  return std::all_of(operand.begin(), operand.end(), [&](const Region& region) {
    return region.buffer == operand.front().buffer && region.row.fixed();
  });
}

}  // namespace

std::vector<std::int32_t> Symmetry::fixed_rows(Operand operand) {
  std::vector<std::int32_t> rows;
  for (const Region& region : operand) {
    for (std::int32_t row = 0; row < region.rows; ++row) {
      rows.push_back(region.row.constant + row);
    }
  }
  return rows;
}

Symmetry::Symmetry(const Program& program) : program_(program), buffers_(program.buffers.size()) {
  for (const Buffer& buffer : program.buffers) {
    grids_.push_back({{buffer.rows.blocks, {}}, {buffer.columns.blocks, {}}});
  }
  for (const Tensor& tensor : program.tensors) {
    grids_.push_back({{tensor.rows.blocks, {}}, {tensor.columns.blocks, {}}});
  }
}

std::optional<Rotation> Symmetry::columns_inside(Operand operand) const {
  const auto inside = [&](const Region& region) {
    return rotation_inside(program_.mesh, {region.column, region.columns}, grids_[position(region.buffer)].columns);
  };
  const std::optional<Rotation> first = inside(operand.front());
  const bool alike =
      std::all_of(operand.begin() + 1, operand.end(), [&](const Region& region) { return inside(region) == first; });
  return alike ? first : std::nullopt;
}

std::optional<Rotation> Symmetry::rows_inside(Operand operand) const {
  const auto inside = [&](const Region& region) {
    return rotation_inside(program_.mesh, {region.row, region.rows}, grids_[position(region.buffer)].rows);
  };
  if (operand.size() == 1) {
    return inside(operand.front());
  }
  const bool still =
      std::all_of(operand.begin(), operand.end(), [&](const Region& region) { return inside(region) == Rotation{}; });
  return still ? Rotation{} : stacked(operand, grids_[position(operand.front().buffer)].rows);
}

/// Rows of a buffer that turn into each other: "slice i of every shard". Row 0 of the stack tells the step, all others
/// must follow it.
std::optional<Rotation> Symmetry::stacked(Operand operand, const Direction& rows) const {
  const Mesh& mesh = program_.mesh;
  const std::vector<std::int32_t> places = fixed_rows(operand);
  const bool inside =
      std::all_of(places.begin(), places.end(), [&](std::int32_t place) { return place >= 0 && place < rows.blocks; });
  if (!inside || !in_fixed_places(operand)) {
    return std::nullopt;
  }
  Direction stack{static_cast<std::int32_t>(places.size()), {}};
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (rows.rotation.step[axis] == 0) {
      continue;
    }
    Turn by_one{};
    by_one[axis] = 1;
    const auto next = std::find(places.begin(), places.end(), rows.rotation.at(mesh, places.front(), by_one));
    if (next == places.begin() || next == places.end() || !stack.move(mesh, axis, next - places.begin())) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int32_t moved = stack.rotation.at(mesh, static_cast<std::int32_t>(i), by_one);
      if (places[static_cast<std::size_t>(moved)] != rows.rotation.at(mesh, places[i], by_one)) {
        return std::nullopt;
      }
    }
  }
  return stack.rotation;
}

}  // namespace commfuse
