// SPDX-License-Identifier: Apache-2.0
// Figures of a capacity plan.
#pragma once

#include <cstdint>
#include <vector>

#include "model/record/capacity_plan.h"
#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Narrow figures fit a phone, and their ids end in "-narrow".
enum class FigureWidth : std::uint8_t { wide, narrow };

/// Returns up to four figures: days against GPUs, with the deadline; cost against days; tokens per second against the
/// link rate; and how much each input changes the cost. Figures for which the plan has no data are omitted.
std::vector<Figure> plan_figures(const CapacityPlan& plan, FigureWidth width = FigureWidth::wide);

}  // namespace commfuse::reports
