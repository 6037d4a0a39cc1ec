// SPDX-License-Identifier: Apache-2.0
// Student's t distribution, limited to what 95% confidence intervals need.
#pragma once

#include <cstddef>

namespace commfuse {

/// Returns the value that Student's t exceeds with a probability of 2.5%, to within 4e-10. Requires at least one degree
/// of freedom.
double student_975(std::size_t degrees_of_freedom);

}  // namespace commfuse
