// SPDX-License-Identifier: Apache-2.0
// Student's t distribution, as far as 95 % confidence intervals need it.
#pragma once

#include <cstddef>

namespace commfuse {

/// The value that Student's t exceeds with a probability of 2.5 %, within 4e-10 of itself. Requires at least one degree
/// of freedom.
double student_975(std::size_t degrees_of_freedom);

}  // namespace commfuse
