// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/collective.h"

#include <algorithm>

#include "model/check.h"
#include "validate/values/arithmetic.h"

namespace commfuse::validate {

namespace {

/// Returns the i-th of `parts` equal row blocks.
Matrix<float> row_block(const Matrix<float>& matrix, std::size_t i, std::size_t parts) {
  check(matrix.rows() % static_cast<std::int64_t>(parts) == 0, "a collective cuts its rows into equal parts");
  const std::int64_t rows = matrix.rows() / static_cast<std::int64_t>(parts);
  return rows_of(matrix, static_cast<std::int64_t>(i) * rows, rows);
}

}  // namespace

std::vector<Matrix<float>> collective(CollectiveKind kind, std::span<const Matrix<float>> inputs) {
  if (!cuts(kind)) {
    return std::vector(inputs.size(), result_of(kind, inputs));
  }
  std::vector<Matrix<float>> results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Matrix<float>> parts;
    for (const Matrix<float>& input : inputs) {
      parts.push_back(part_for(kind, input, i, inputs.size()));
    }
    results.push_back(result_of(kind, parts));
  }
  return results;
}

Matrix<float> part_for(CollectiveKind kind, const Matrix<float>& input, std::size_t member, std::size_t members) {
  return cuts(kind) ? row_block(input, member, members) : input;
}

Matrix<float> result_of(CollectiveKind kind, std::span<const Matrix<float>> parts) {
  return adds(kind) ? sum(parts) : stacked(parts);
}

Matrix<float> rows_of(const Matrix<float>& matrix, std::int64_t first, std::int64_t count) {
  check(first >= 0 && first + count <= matrix.rows(), "rows lie inside their matrix");
  Matrix<float> part(count, matrix.columns());
  for (std::int64_t row = 0; row < count; ++row) {
    std::ranges::copy(matrix.row(first + row), part.row(row).begin());
  }
  return part;
}

Matrix<float> stacked(std::span<const Matrix<float>> parts) {
  check(!parts.empty(), "a stack has a part");
  std::int64_t rows = 0;
  for (const Matrix<float>& part : parts) {
    check(part.columns() == parts.front().columns(), "the parts of a stack are equally wide");
    rows += part.rows();
  }
  Matrix<float> result(rows, parts.front().columns());
  auto next = result.values().begin();
  for (const Matrix<float>& part : parts) {
    next = std::ranges::copy(part.values(), next).out;
  }
  return result;
}

}  // namespace commfuse::validate
