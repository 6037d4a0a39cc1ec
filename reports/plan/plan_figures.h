// SPDX-License-Identifier: Apache-2.0
// What a capacity plan looks like.
#pragma once

#include <vector>

#include "model/record/capacity_plan.h"
#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Days over GPUs with the deadline; cost over days; tokens a second over the rate of links; what cost hangs on. Those
/// for which the plan has nothing to show are left out.
std::vector<Figure> plan_figures(const CapacityPlan& plan);

}  // namespace commfuse::reports
