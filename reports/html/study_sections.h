// SPDX-License-Identifier: Apache-2.0
// Sections of a report: one point with its uncertainty, the parameters behind it, measured times, and fits.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/html/charts.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Shows the breakdown of the time, its distribution under jitter and its sensitivity; a note states why one of the
/// last two is absent. `title` names the point. Empty without predicted runs.
std::string study_section(const PointStudy& study, std::string_view title, Charts& charts);

/// Lists every parameter on which a time depends, with its kind, standard error, effect and source; states only name
/// and kind of parameters with little effect. `place` names the point. Empty without parameters.
std::string parameters_table(const Explanation& explanation, std::string_view place);

/// Compares predicted with measured times. Empty without pairs.
std::string agreement_section(std::span<const MeasuredPair> pairs, Charts& charts);

/// Shows residuals of fits. Empty without fits.
std::string fits_section(std::span<const FitCheck> fits, Charts& charts);

}  // namespace commfuse::reports
