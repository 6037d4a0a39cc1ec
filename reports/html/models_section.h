// SPDX-License-Identifier: Apache-2.0
// The section of a report about whole models.
#pragma once

#include <span>
#include <string>

#include "model/analysis/verdict.h"
#include "model/record/step_row.h"
#include "reports/html/charts.h"

namespace commfuse::reports {

/// What all rows say together: what does not fit the memory, and the plan to take, or who wins the only one.
std::string models_sentence(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Times of plans, who wins where, and a table of all rows; empty without rows. `lead` (plain text) stands first.
std::string models_section(std::span<const StepRow> rows, const std::string& lead, Charts& charts,
                           const VerdictRule& rule = {});

}  // namespace commfuse::reports
