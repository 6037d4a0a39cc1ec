// SPDX-License-Identifier: Apache-2.0
// The last step of every cost formula.
#pragma once

#include <string_view>

#include "model/units.h"

namespace commfuse {

/// Longest time one op may take: keeps the sum over a whole program inside Duration.
inline constexpr double longest_op_seconds = 1e5;

/// Rounds to the nearest picosecond. Throws ConfigError when the op would take longer than `longest_op_seconds`: the
/// user's sizes or rates are off by orders of magnitude. `what` names it, as in "a matrix product". Requires seconds >=
/// 0.
Duration op_time(double seconds, std::string_view what);

}  // namespace commfuse
