// SPDX-License-Identifier: Apache-2.0
// Chooses round values for the ticks of an axis.
#pragma once

#include <vector>

#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Returns multiples of 1, 2 or 5 times a power of ten inside [low, high], at most `wanted` + 1 of them. Requires
/// low < high and wanted >= 1.
std::vector<Tick> round_ticks(double low, double high, int wanted);

/// Returns powers of ten inside [low, high]. Requires 0 < low < high.
std::vector<Tick> decade_ticks(double low, double high);

/// Returns ticks of a logarithmic axis: round values if it spans less than one power of ten, 1, 2 and 5 times powers of
/// ten if it spans up to three, else powers of ten. Requires 0 < low < high.
std::vector<Tick> log_ticks(double low, double high);

}  // namespace commfuse::reports
