// SPDX-License-Identifier: Apache-2.0
// The section of a report on whole models.
#pragma once

#include <span>
#include <string>

#include "model/analysis/verdict.h"
#include "model/record/step_row.h"
#include "reports/html/charts.h"

namespace commfuse::reports {

/// Returns the saving of overlap in the decisive plan, and its verdict; without serial, the recommended plan.
std::string models_sentence(std::span<const StepRow> rows, const VerdictRule& rule = {});
/// Returns the saving of overlap over all plans, and the recommended plan; empty if models_sentence() is complete.
std::string models_sum(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Returns times of plans, maps of winners, and a table of all rows; empty without rows. Begins with memory_sentence()
/// and the two texts above if no other section has them (`leads`).
std::string models_section(std::span<const StepRow> rows, bool leads, Charts& charts, const VerdictRule& rule = {});

}  // namespace commfuse::reports
