// SPDX-License-Identifier: Apache-2.0
// Converts a row of results back to its settings.
#pragma once

#include "model/record/result.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// Returns the settings that a row contains. A row does not contain all settings; for example, it lacks prices set by
/// hand. Throws ConfigError if a name in the row no longer exists.
Settings settings_of_row(const ResultRow& row);

}  // namespace commfuse::sim
