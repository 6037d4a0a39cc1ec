// SPDX-License-Identifier: Apache-2.0
// Draws the parts of a whole model's time, strategy by strategy.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/figure/figure.h"
#include "reports/plan_verdicts.h"

namespace commfuse::reports {

/// Formats the row's time as "836.2 ms", with three decimals for decoding. Requires a result.
std::string model_time_text(const StepRow& row);

/// Draws a bar for each strategy of one plan: the four parts of a training step, else the time. Requires a row with a
/// result.
Figure model_time_figure(std::span<const StepRow* const> plan, std::string id, const VerdictRule& rule = {});

}  // namespace commfuse::reports
