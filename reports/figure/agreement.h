// SPDX-License-Identifier: Apache-2.0
// How well predictions meet measurements.
#pragma once

#include <span>
#include <string>

#include "reports/figure/figure.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Measured against predicted, both axes logarithmic, with lines at +-10 %. Requires a pair.
Figure agreement_figure(std::span<const MeasuredPair> pairs, std::string id = "agreement");

/// What a fit is off by, against what was measured. Requires a residual.
Figure residual_figure(const FitCheck& fit, std::string id);

}  // namespace commfuse::reports
