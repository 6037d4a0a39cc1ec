// SPDX-License-Identifier: Apache-2.0
// From a row of results back to its point.
#pragma once

#include "model/record/result.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Returns the settings that a row tells. A row cannot tell others, such as a price set by hand. Throws ConfigError if
/// a name in it no longer exists.
Settings settings_of_row(const ResultRow& row);

}  // namespace commfuse::sim
