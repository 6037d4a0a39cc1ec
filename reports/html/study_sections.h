// SPDX-License-Identifier: Apache-2.0
// The sections of a report on one point, its inputs, measurements and fits.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/html/charts.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Returns breakdown, distribution under jitter and sensitivity, as far as they exist. The title names the point.
std::string study_section(const PointStudy& study, std::string_view title, Charts& charts);

/// Lists every parameter on which a time depends, with its kind, its error and its source; names parameters with little
/// effect without details. `place` names the point. Empty without parameters.
std::string parameters_table(const Explanation& explanation, std::string_view place);

/// Compares predicted with measured times. Empty without pairs.
std::string agreement_section(std::span<const MeasuredPair> pairs, Charts& charts);

/// Shows residuals of fits. Empty without fits.
std::string fits_section(std::span<const FitCheck> fits, Charts& charts);

}  // namespace commfuse::reports
