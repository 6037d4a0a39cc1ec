// SPDX-License-Identifier: Apache-2.0
// Residuals of a fit as text, for terminals and logs.
#pragma once

#include <span>
#include <string>

#include "sim/calibrate/calibrate.h"

namespace commfuse::calibrate {

/// Returns one line per decade of measured time: the range of the middle 90% of predicted / measured - 1, and the
/// median. At most 80 columns; ends with a scale.
std::string residual_plot(std::span<const Residual> residuals);

}  // namespace commfuse::calibrate
