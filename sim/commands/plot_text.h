// SPDX-License-Identifier: Apache-2.0
// Figures in a terminal.
#pragma once

#include <span>
#include <string>

#include "reports/figure/figure.h"

namespace commfuse::sim {

/// Draws figures as wide as the terminal (80 columns without one), in ASCII where the locale is not UTF-8. An empty
/// line stands above each.
std::string plots_in_words(std::span<const reports::Figure> figures);

}  // namespace commfuse::sim
