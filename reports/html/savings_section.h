// SPDX-License-Identifier: Apache-2.0
// What overlap saves against serial, as the tables below the verdict.
#pragma once

#include <string>

#include "reports/html/overview.h"

namespace commfuse::reports {

/// A row a strategy, and where there are several settings a row a setting; empty for fewer than two points with serial.
std::string savings_tables(const Overview& overview);

}  // namespace commfuse::reports
