// SPDX-License-Identifier: Apache-2.0
// Explains a prediction: its ops, its critical path and its sensitivities.
#pragma once

#include "model/record/explanation.h"
#include "sim/point/predict.h"

namespace commfuse {

/// Returns the ops by shape with the cost model's choices, the critical path by kind, and the sensitivity of the
/// makespan, all at fixed prices (static_costs). The caller fills `row` and `verdict`. `prediction` must be a
/// prediction of `point`.
Explanation explain(const Point& point, const Prediction& prediction, Predictor& predictor);

}  // namespace commfuse
