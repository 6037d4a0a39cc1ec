// SPDX-License-Identifier: Apache-2.0
// Formats large counts for people.
#pragma once

#include <cstdint>
#include <string>

namespace commfuse::reports {

/// Formats "1,000,000" and "-12,345"; below ten thousand without a comma, as in years and counts of GPUs.
std::string with_commas(std::int64_t count);

}  // namespace commfuse::reports
