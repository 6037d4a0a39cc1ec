// SPDX-License-Identifier: Apache-2.0
// Figures as text, for terminals and logs.
#pragma once

#include <string>

#include "reports/figure/figure.h"

namespace commfuse::reports {

struct TerminalOptions {
  int columns = 80;
  bool unicode = true;  // false: only ASCII characters
};

/// Returns the title, the plot with its axes, and a legend; every line is at most `columns` wide. Boxes are shades,
/// lines are dots (braille, with Unicode), cells are their texts or shades. The only text marks shown are the headings
/// of timelines and the totals of bars. Bands are omitted. Requires at least 40 columns.
std::string terminal_plot(const Figure& figure, const TerminalOptions& options);

}  // namespace commfuse::reports
