// SPDX-License-Identifier: Apache-2.0
// Formats large counts for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace commfuse::reports {

/// Formats a number as "1,000,000" or "-12,345"; below ten thousand without a comma, as in years and counts of GPUs.
std::string with_commas(std::int64_t count);
inline std::string size_with_commas(std::size_t count) { return with_commas(static_cast<std::int64_t>(count)); }

}  // namespace commfuse::reports
