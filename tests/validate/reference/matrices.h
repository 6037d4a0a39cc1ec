// SPDX-License-Identifier: Apache-2.0
// Small matrices and programs in short notation for tests.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "model/program/program.h"
#include "model/strategies/scope.h"
#include "validate/reference/check_point.h"
#include "validate/values/matrix.h"

namespace commfuse::validate::test {

inline Matrix<float> matrix(std::initializer_list<std::initializer_list<float>> rows) {
  Matrix<float> result(static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows.begin()->size()));
  auto next = result.values().begin();
  for (const auto& row : rows) {
    for (const float value : row) {
      *next++ = value;
    }
  }
  return result;
}

inline std::shared_ptr<const Program> shared(Program program) {
  return std::make_shared<const Program>(std::move(program));
}

/// Returns the operation of checked_operations() with this name.
inline const CheckedOperation& operation_named(std::string_view name) {
  return *std::ranges::find(checked_operations(), name, &CheckedOperation::name);
}

/// Returns every strategy on one operation of checked_operations(), in the schedules that are tried on `ranks` ranks.
inline std::vector<CheckPoint> points_of(const CheckedOperation& operation, std::int32_t ranks, DType dtype) {
  std::vector<CheckPoint> points;
  for (const Strategy& strategy : strategies()) {
    for (const StrategyOptions& options :
         schedules_to_try(strategy, kinds_of(operation.operation), ranks, {.dtype = dtype})) {
      points.push_back({&operation, &strategy, options, ranks, 1});
    }
  }
  return points;
}

/// Returns every strategy on one operation, in all schedules that are proved on `ranks` ranks.
inline std::vector<CheckPoint> all_points_of(const CheckedOperation& operation, std::int32_t ranks) {
  std::vector<CheckPoint> points;
  for (const Strategy& strategy : strategies()) {
    for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(operation.operation), ranks)) {
      points.push_back({&operation, &strategy, options, ranks, 1});
    }
  }
  return points;
}

}  // namespace commfuse::validate::test
