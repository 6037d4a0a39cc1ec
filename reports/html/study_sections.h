// SPDX-License-Identifier: Apache-2.0
// The sections of a report about one point, about its inputs, measurements and fits.
#pragma once

#include <span>
#include <string>

#include "reports/html/charts.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Breakdown, distribution under jitter, roofline, what the time hangs on; what there is of these.
std::string study_section(const PointStudy& study, Charts& charts);

/// Every parameter that a time hangs on, with its kind, its error and where it is from. Empty without any.
std::string parameters_table(const Explanation& explanation);

/// Predicted against measured. Empty without pairs.
std::string agreement_section(std::span<const MeasuredPair> pairs, Charts& charts);

/// Residuals of fits. Empty without any.
std::string fits_section(std::span<const FitCheck> fits, Charts& charts);

}  // namespace commfuse::reports
