// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/other_ranks.h"

namespace commfuse {

std::vector<std::vector<Value>> OtherRanks::hold(const std::vector<Value>& held, Slice operand, std::int32_t rows,
                                                 std::span<const Turn> turns) {
  const Mesh& mesh = program_.mesh;
  const auto regions = program_.regions_of(operand);
  const std::int32_t columns = regions.front().columns;
  const Rotation down = *symmetry_.rows_inside(regions);
  const Rotation across = *symmetry_.columns_inside(regions);
  std::vector<std::vector<Value>> values(turns.size());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Turn back = inverse(mesh, turns[i]);
    values[i].reserve(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    for (std::int32_t row = 0; row < rows; ++row) {
      const auto from = static_cast<std::size_t>(down.at(mesh, row, back)) * static_cast<std::size_t>(columns);
      for (std::int32_t column = 0; column < columns; ++column) {
        values[i].push_back(moved(held[from + static_cast<std::size_t>(across.at(mesh, column, back))], turns[i]));
      }
    }
  }
  return values;
}

Value OtherRanks::moved(Value value, const Turn& turn) {
  if (static_cast<std::int32_t>(value.tensor) < 0) {
    return value;
  }
  const Moves& labels = symmetry_.of(value.tensor);
  value.row = labels.rows.rotation.at(program_.mesh, value.row, turn);
  value.column = labels.columns.rotation.at(program_.mesh, value.column, turn);
  const Tensor& tensor = program_.tensors[position(value.tensor)];
  if (tensor.definition == Tensor::Definition::product) {
    const Rotation& contraction = symmetry_.contraction_of(tensor).rotation;
    for (std::size_t axis = 0; axis < program_.mesh.axes.size(); ++axis) {
      value.sum = sums_.moved(value.sum, contraction.cycle(program_.mesh, axis, turn));
    }
  }
  return value;
}

}  // namespace commfuse
