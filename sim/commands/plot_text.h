// SPDX-License-Identifier: Apache-2.0
// Figures on stdout.
#pragma once

#include <span>

#include "reports/figure/figure.h"

namespace commfuse::sim {

/// As wide as the terminal (80 columns where there is none), in ASCII where the locale is not UTF-8.
void print_plots(std::span<const reports::Figure> figures);

}  // namespace commfuse::sim
