// SPDX-License-Identifier: Apache-2.0
// Lists as people write them on the command line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace commfuse {

/// Returns the parts between commas; one empty part for empty text.
std::vector<std::string_view> split_list(std::string_view text);

/// Whole numbers that a flag accepts.
struct WholeNumbers {
  std::string_view flag;  // "--ranks", for messages
  std::int32_t lowest = 1;
  std::int32_t highest = 1;
};

/// Parses "4", "2,4,8", "1..8" (every number, both ends included) or a mixture, "1..4,8"; returns the numbers in the
/// written order, each once. Throws ConfigError with the remedy.
std::vector<std::int32_t> parse_whole_numbers(std::string_view text, const WholeNumbers& allowed);

}  // namespace commfuse
