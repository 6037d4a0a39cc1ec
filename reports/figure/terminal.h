// SPDX-License-Identifier: Apache-2.0
// Figures as text, for terminals and logs.
#pragma once

#include <string>

#include "reports/figure/figure.h"

namespace commfuse::reports {

struct TerminalOptions {
  int columns = 80;
  bool unicode = true;  // false: characters of ASCII alone
};

/// The title, the plot with its axes, and what the characters mean; every line at most `columns` wide. Boxes are
/// shades, lines are dots (braille, where there is Unicode), cells are their texts or shades; bands and words are left
/// out. Requires 40 columns.
std::string terminal_plot(const Figure& figure, const TerminalOptions& options);

}  // namespace commfuse::reports
