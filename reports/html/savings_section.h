// SPDX-License-Identifier: Apache-2.0
// Savings of overlap against serial, as the tables below the verdict.
#pragma once

#include <string>

#include "reports/html/overview.h"

namespace commfuse::reports {

/// Returns a table with a row per strategy and, for several settings, a table with a row per setting; empty for fewer
/// than two points with serial.
std::string savings_tables(const Overview& overview);

}  // namespace commfuse::reports
