// SPDX-License-Identifier: Apache-2.0
// The settings of a training plan's layout, by the names that every JSON uses.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "model/workload/training_plan.h"

namespace commfuse::reports {

using LayoutCell = std::pair<std::string_view, std::variant<bool, std::int64_t, std::string_view>>;

/// Returns the cells in the order that every JSON uses.
std::array<LayoutCell, 12> layout_cells(const TrainingPlan& plan);

}  // namespace commfuse::reports
