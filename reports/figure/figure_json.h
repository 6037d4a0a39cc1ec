// SPDX-License-Identifier: Apache-2.0
// Figures for scripts: everything that a Figure says, as JSON.
#pragma once

#include <string>

#include "reports/figure/figure.h"

namespace commfuse::reports {

/// One object; reports/assets/charts/ draws from it. Bars are boxes there: a mark is a box, line, band, points, text or
/// cell. Text that is no UTF-8 is replaced.
std::string figure_json(const Figure& figure);

/// Its data as CSV; RFC 4180.
std::string figure_csv(const Figure& figure);

}  // namespace commfuse::reports
