// SPDX-License-Identifier: Apache-2.0
// Takes a prediction apart.
#pragma once

#include "model/record/explanation.h"
#include "sim/point/predict.h"

namespace commfuse {

/// Returns the ops by shape with the cost model's choices, the critical path by kind, and the sensitivity of the
/// makespan, at prices that stay fixed (static_costs). `row` and `verdict` are left to the caller. Requires a
/// prediction of the point.
Explanation explain(const Point& point, const Prediction& prediction, Predictor& predictor);

}  // namespace commfuse
