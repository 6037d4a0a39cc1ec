// SPDX-License-Identifier: Apache-2.0
// GEMMs under the roofs of memory and of arithmetic.
#pragma once

#include <string>

#include "reports/figure/figure.h"
#include "reports/study.h"

namespace commfuse::reports {

/// Draws each GEMM as a point on two logarithmic axes; the roof is min(peak, memory x intensity). Requires a GEMM.
Figure roofline_figure(const Roofline& roofline, std::string id = "roofline");

}  // namespace commfuse::reports
