// SPDX-License-Identifier: Apache-2.0
// How a training plan spreads a model over GPUs, by the names that every JSON has for it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "model/workload/training_plan.h"

namespace commfuse::reports {

using LayoutCell = std::pair<std::string_view, std::variant<bool, std::int64_t, std::string_view>>;

/// In the order of JSON.
std::array<LayoutCell, 12> layout_cells(const TrainingPlan& plan);

}  // namespace commfuse::reports
