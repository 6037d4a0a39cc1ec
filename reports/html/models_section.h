// SPDX-License-Identifier: Apache-2.0
// The section of a report about whole models.
#pragma once

#include <span>
#include <string>

#include "model/analysis/verdict.h"
#include "model/record/step_row.h"
#include "reports/html/charts.h"

namespace commfuse::reports {

/// What overlap saves by the plan that decides most, and the verdict on it; without serial the plan to take.
std::string models_sentence(std::span<const StepRow> rows, const VerdictRule& rule = {});
/// What overlap saves over all plans, and the plan to take; empty where models_sentence() says all there is.
std::string models_sum(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Times of plans, who wins where, and a table of all rows; empty without rows. Begins with both sentences where no
/// other section said them (`leads`).
std::string models_section(std::span<const StepRow> rows, bool leads, Charts& charts, const VerdictRule& rule = {});

}  // namespace commfuse::reports
