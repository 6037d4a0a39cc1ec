// SPDX-License-Identifier: Apache-2.0
// Figures drawn from rows of results: maps of winners, and commfuse's lead.
#pragma once

#include <span>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/result.h"
#include "model/record/step_row.h"
#include "reports/figure/figure.h"

namespace commfuse::sim {

/// Returns a map of winners for every comparison with several points and, if the rows allow it, figures of commfuse's
/// lead by sequence length, one figure for each setting. If there are several figures, their titles name the settings.
/// Whole models have only maps. Empty if the rows allow neither.
std::vector<reports::Figure> figures_of(std::span<const ResultRow> rows, const VerdictRule& rule);
std::vector<reports::Figure> figures_of(std::span<const StepRow> rows, const VerdictRule& rule);

}  // namespace commfuse::sim
