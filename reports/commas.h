// SPDX-License-Identifier: Apache-2.0
// Large counts for people.
#pragma once

#include <cstdint>
#include <string>

namespace commfuse::reports {

/// "1,000,000", "-1,234"; below ten thousand without a comma, as years and counts of GPUs are written.
std::string with_commas(std::int64_t count);

}  // namespace commfuse::reports
