// SPDX-License-Identifier: Apache-2.0
// Figures of the agreement between predictions and measurements.
#pragma once

#include <span>
#include <string>

#include "reports/figure/figure.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Draws measured against predicted times, both axes logarithmic, with lines at +-10%. Requires at least one pair.
Figure agreement_figure(std::span<const MeasuredPair> pairs, std::string id = "agreement");

/// Draws the residuals of a fit against the measured values. Requires at least one residual.
Figure residual_figure(const FitCheck& fit, std::string id);

}  // namespace commfuse::reports
