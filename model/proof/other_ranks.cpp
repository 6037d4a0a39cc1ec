// SPDX-License-Identifier: Apache-2.0
#include "model/proof/other_ranks.h"

namespace commfuse {

OtherRanks::OtherRanks(const Program& program, const Symmetry& symmetry, Sums& sums, Slice operand)
    : program_(program),
      symmetry_(symmetry),
      sums_(sums),
      columns_(program.regions_of(operand).front().columns),
      down_(*symmetry.rows_inside(program.regions_of(operand))),
      across_(*symmetry.columns_inside(program.regions_of(operand))) {}

void OtherRanks::derive(const CellValues& first_values, std::int32_t rows, const Turn& turn, CellValues& values) {
  const Mesh& mesh = program_.mesh;
  const Turn back = inverse(mesh, turn);
  values.clear();
  values.reserve(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns_));
  for (std::int32_t row = 0; row < rows; ++row) {
    const auto from = static_cast<std::size_t>(down_.at(mesh, row, back)) * static_cast<std::size_t>(columns_);
    for (std::int32_t column = 0; column < columns_; ++column) {
      const CellValue& value = first_values[from + static_cast<std::size_t>(across_.at(mesh, column, back))];
      values.push_back(moved(program_, symmetry_, sums_, value, turn));
    }
  }
}

CellValue moved(const Program& program, const Symmetry& symmetry, Sums& sums, CellValue value, const Turn& turn) {
  if (static_cast<std::int32_t>(value.tensor) < 0) {
    return value;
  }
  const Moves& labels = symmetry.of(value.tensor);
  value.row = labels.rows.rotation.at(program.mesh, value.row, turn);
  value.column = labels.columns.rotation.at(program.mesh, value.column, turn);
  const Tensor& tensor = program.tensors[position(value.tensor)];
  if (tensor.definition == Tensor::Definition::product) {
    const Rotation& contraction = symmetry.contraction_of(tensor).rotation;
    for (std::size_t axis = 0; !contraction.still() && axis < program.mesh.axes.size(); ++axis) {
      value.sum = sums.moved(value.sum, contraction.cycle(program.mesh, axis, turn));
    }
  }
  return value;
}

}  // namespace commfuse
