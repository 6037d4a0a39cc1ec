// SPDX-License-Identifier: Apache-2.0
// Who stands where, told of a run that does not come to its end.
#pragma once

#include <span>
#include <string>

namespace commfuse::validate {

/// "rank 0 waits [...], rank 1 waits [...]": the first four, and how many more there are.
std::string standing_in_words(std::span<const std::string> sentences);

}  // namespace commfuse::validate
