// SPDX-License-Identifier: Apache-2.0
// Figures for scripts, as JSON.
#pragma once

#include <string>

#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Writes one object; reports/assets/charts/ draws from it. Bars become boxes: a mark is a box, line, band, points,
/// text or cell. Text that is not UTF-8 is replaced.
std::string figure_json(const Figure& figure);

/// Writes the figure's data as RFC 4180 CSV.
std::string figure_csv(const Figure& figure);

}  // namespace commfuse::reports
