// SPDX-License-Identifier: Apache-2.0
// What a prediction hangs on.
#pragma once

#include <string>

#include "model/record/explanation.h"
#include "reports/figure/figure.h"

namespace commfuse::reports {

/// A bar a parameter or fit: how much longer and shorter one standard error of it makes the time, the largest first.
/// Requires a hold with an effect: has_effects().
Figure tornado_figure(const Explanation& explanation, std::string id = "tornado");

bool has_effects(const Explanation& explanation);

}  // namespace commfuse::reports
