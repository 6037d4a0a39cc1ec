// SPDX-License-Identifier: Apache-2.0
// Where the time of a whole model goes, strategy by strategy.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/figure/figure.h"
#include "reports/step_rows.h"

namespace commfuse::reports {

/// "836.2 ms", with three digits where tokens are decoded. Requires a result.
std::string model_time_text(const StepRow& row);

/// A bar a strategy of one plan: of training the four parts of a step, else the time. Requires a row with a result.
Figure model_time_figure(std::span<const StepRow* const> plan, std::string id, const VerdictRule& rule = {});

}  // namespace commfuse::reports
