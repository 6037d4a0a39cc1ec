// SPDX-License-Identifier: Apache-2.0
// Draws how sensitive a prediction is to each parameter and fit.
#pragma once

#include <string>

#include "model/record/explanation.h"
#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Draws a bar for each of up to twelve parameters and fits: the change of the time by one standard error in each
/// direction, the largest first. Requires has_effects().
Figure tornado_figure(const Explanation& explanation, std::string id = "tornado");

/// Returns true if at least one parameter or fit changes the time.
bool has_effects(const Explanation& explanation);

}  // namespace commfuse::reports
