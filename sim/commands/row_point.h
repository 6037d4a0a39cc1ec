// SPDX-License-Identifier: Apache-2.0
// From a row of results back to the point that it is of.
#pragma once

#include "model/record/result.h"
#include "sim/point/request.h"

namespace commfuse::sim {

/// The settings that a row tells: whatever else was set, such as a price by hand, it cannot. Throws ConfigError where
/// what it names is not there any more.
Settings settings_of_row(const ResultRow& row);

}  // namespace commfuse::sim
