// SPDX-License-Identifier: Apache-2.0
// Figures of rows of results, as people are shown them.
#pragma once

#include <span>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/result.h"
#include "model/record/step_row.h"
#include "reports/figure/figure.h"

namespace commfuse::sim {

/// Returns a map of winners for every comparison that has several points, and how far ahead commfuse is along the
/// sequence where rows show it. Empty if rows show neither.
std::vector<reports::Figure> figures_of(std::span<const ResultRow> rows, const VerdictRule& rule);
std::vector<reports::Figure> figures_of(std::span<const StepRow> rows, const VerdictRule& rule);

}  // namespace commfuse::sim
