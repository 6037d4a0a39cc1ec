// SPDX-License-Identifier: Apache-2.0
// A prediction taken apart.
#pragma once

#include "model/record/explanation.h"
#include "sim/point/predict.h"

namespace commfuse {

/// Ops by shape with what the cost model made of them, the critical path by kind, and what the makespan hangs on, at
/// prices that stay fixed (static_costs). `row` and `verdict` are left to the caller. Requires a prediction of the
/// point.
Explanation explain(const Point& point, const Prediction& prediction, Predictor& predictor);

}  // namespace commfuse
