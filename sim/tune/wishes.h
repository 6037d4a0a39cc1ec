// SPDX-License-Identifier: Apache-2.0
// Reads a training plan from settings: the degrees that are fixed, and everything that is not a degree of freedom.
#pragma once

#include <string_view>

#include "model/config/settings.h"
#include "sim/tune/plan_space.h"

namespace commfuse {

/// Returns whether the user chose the setting.
bool is_chosen(const Settings& settings, std::string_view key);

/// Returns the degrees that the user chose.
PlanWish wish_of(const Settings& settings);

/// Returns everything that is not a degree of freedom, such as batch, sequence, dtypes and optimizer. If no batch was
/// chosen, a step has about 4M tokens.
TrainingPlan base_of(const Settings& settings);

}  // namespace commfuse
