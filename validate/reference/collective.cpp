// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/collective.h"

#include <algorithm>

#include "model/check.h"
#include "validate/reference/arithmetic.h"

namespace commfuse::validate {

namespace {

/// The i-th of `parts` equal row blocks.
Matrix<float> row_block(const Matrix<float>& matrix, std::size_t i, std::size_t parts) {
  check(matrix.rows() % static_cast<std::int64_t>(parts) == 0, "a collective cuts its rows into equal parts");
  const std::int64_t rows = matrix.rows() / static_cast<std::int64_t>(parts);
  return rows_of(matrix, static_cast<std::int64_t>(i) * rows, rows);
}

std::vector<Matrix<float>> scattered(const Matrix<float>& whole, std::size_t members) {
  std::vector<Matrix<float>> results;
  for (std::size_t i = 0; i < members; ++i) {
    results.push_back(row_block(whole, i, members));
  }
  return results;
}

std::vector<Matrix<float>> transposed(std::span<const Matrix<float>> inputs) {
  std::vector<Matrix<float>> results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Matrix<float>> parts;
    for (const Matrix<float>& input : inputs) {
      parts.push_back(row_block(input, i, inputs.size()));
    }
    results.push_back(stacked(parts));
  }
  return results;
}

}  // namespace

std::vector<Matrix<float>> collective(CollectiveKind kind, std::span<const Matrix<float>> inputs) {
  switch (kind) {
    case CollectiveKind::all_gather: return std::vector(inputs.size(), stacked(inputs));
    case CollectiveKind::reduce_scatter: return scattered(sum(inputs), inputs.size());
    case CollectiveKind::all_reduce: return std::vector(inputs.size(), sum(inputs));
    case CollectiveKind::all_to_all: return transposed(inputs);
  }
  return {};
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
  Matrix<float> whole(rows, parts.front().columns());
  auto next = whole.values().begin();
  for (const Matrix<float>& part : parts) {
    next = std::ranges::copy(part.values(), next).out;
  }
  return whole;
}

}  // namespace commfuse::validate
