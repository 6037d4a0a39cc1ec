// SPDX-License-Identifier: Apache-2.0
// The sections of a report about one point, about its inputs, measurements and fits.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/html/charts.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Breakdown, distribution under jitter, sensitivity; what there is of these. The title says which point it is.
std::string study_section(const PointStudy& study, std::string_view title, Charts& charts);

/// Every parameter that a time depends on, with its kind, its error and its source; those that hardly change it by name
/// alone. Empty without any.
std::string parameters_table(const Explanation& explanation);

/// Predicted against measured. Empty without pairs.
std::string agreement_section(std::span<const MeasuredPair> pairs, Charts& charts);

/// Residuals of fits. Empty without any.
std::string fits_section(std::span<const FitCheck> fits, Charts& charts);

}  // namespace commfuse::reports
