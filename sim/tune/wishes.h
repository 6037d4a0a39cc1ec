// SPDX-License-Identifier: Apache-2.0
// What settings say of a training plan: what is kept, and what is no degree of freedom.
#pragma once

#include <string_view>

#include "model/config/settings.h"
#include "sim/tune/plan_space.h"

namespace commfuse {

/// Whether somebody chose it.
bool is_chosen(const Settings& settings, std::string_view key);

/// The degrees that somebody chose.
PlanWish wish_of(const Settings& settings);

/// Batch, sequence, dtype, optimizer and order of passes. Nobody chose a batch: that of 4M tokens a step.
TrainingPlan base_of(const Settings& settings);

}  // namespace commfuse
