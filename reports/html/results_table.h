// SPDX-License-Identifier: Apache-2.0
// All points and strategies of one setting, with where each one's time goes.
#pragma once

#include <cstddef>
#include <string>

#include "reports/html/points.h"

namespace commfuse::reports {

/// The first points that have at most `most_rows` rows together; at least one point.
std::string results_table(const Setting& setting, std::size_t most_rows, const VerdictRule& rule = {});

}  // namespace commfuse::reports
