// SPDX-License-Identifier: Apache-2.0
// Formats numbers with a fixed number of decimals.
#pragma once

#include <string>

namespace commfuse {

/// Returns "12.3" for 12.34 with one decimal. A number that rounds to zero has no sign: "0.0" for -0.04.
std::string with_decimals(double number, int decimals);

/// Returns "+12.3" or "-12.3", and "0.0" for a number that rounds to zero.
std::string with_sign(double number, int decimals);

}  // namespace commfuse
