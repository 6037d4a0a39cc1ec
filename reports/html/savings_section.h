// SPDX-License-Identifier: Apache-2.0
// Savings of overlap against serial, as the tables below the verdict.
#pragma once

#include <string>

#include "reports/html/overview.h"

namespace commfuse::reports {

/// Returns a row for each strategy, and if there are several settings a row for each; empty for fewer than two points
/// with serial.
std::string savings_tables(const Overview& overview);

}  // namespace commfuse::reports
