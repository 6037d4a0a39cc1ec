// SPDX-License-Identifier: Apache-2.0
// The result of a collective for each member of its group.
#pragma once

#include <span>
#include <vector>

#include "model/program/program.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// Returns true if the results are sums of the inputs.
constexpr bool adds(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce;
}
/// Returns true if each member gets a different part of the rows of every input.
constexpr bool cuts(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
}

/// Inputs and results are in order of coordinate; sums are taken in order of coordinate, in fp32. With N members:
///   all_gather      every result is all inputs, stacked
///   reduce_scatter  result i is the i-th of N row blocks of the sum of all inputs
///   all_reduce      every result is the sum of all inputs
///   all_to_all      result i is the i-th of N row blocks of every input, stacked
std::vector<Matrix<float>> collective(CollectiveKind kind, std::span<const Matrix<float>> inputs);

/// part_for() returns the part of an input that enters the result of a member; result_of() makes that result from all
/// such parts, by coordinate.
Matrix<float> part_for(CollectiveKind kind, const Matrix<float>& input, std::size_t member, std::size_t members);
Matrix<float> result_of(CollectiveKind kind, std::span<const Matrix<float>> parts);

/// Returns `count` rows, starting at row `first`.
Matrix<float> rows_of(const Matrix<float>& matrix, std::int64_t first, std::int64_t count);
/// Stacks matrices with the same columns. Requires at least one.
Matrix<float> stacked(std::span<const Matrix<float>> parts);

}  // namespace commfuse::validate
