// SPDX-License-Identifier: Apache-2.0
// Sensitivity of a prediction.
#pragma once

#include <string>

#include "model/record/explanation.h"
#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Draws a bar for each parameter or fit: the change of the time by one standard error in each direction, the largest
/// first. Requires has_effects(): at least one hold has an effect.
Figure tornado_figure(const Explanation& explanation, std::string id = "tornado");

bool has_effects(const Explanation& explanation);

}  // namespace commfuse::reports
