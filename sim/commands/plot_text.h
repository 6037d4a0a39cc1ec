// SPDX-License-Identifier: Apache-2.0
// Draws figures as text for the terminal.
#pragma once

#include <span>
#include <string>

#include "reports/figure/figure.h"

namespace commfuse::sim {

/// Returns figures as wide as the terminal (80 columns without a terminal), in ASCII if the locale is not UTF-8. Puts
/// an empty line above each figure.
std::string plots_in_words(std::span<const reports::Figure> figures);

}  // namespace commfuse::sim
