// SPDX-License-Identifier: Apache-2.0
// Numbers with so many decimals, as people read them.
#pragma once

#include <string>

namespace commfuse {

/// Returns "12.3" of 12.34 and one decimal. What rounds to zero has no sign: "0.0" of -0.04.
std::string with_decimals(double number, int decimals);

/// Returns "+12.3" or "-12.3", and "0.0" for what rounds to zero.
std::string with_sign(double number, int decimals);

}  // namespace commfuse
