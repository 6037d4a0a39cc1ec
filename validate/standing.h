// SPDX-License-Identifier: Apache-2.0
// Describes the waiting ranks of a run that cannot finish.
#pragma once

#include <span>
#include <string>

namespace commfuse::validate {

/// Returns "rank 0 waits [...], rank 1 waits [...]" with the first four sentences, and the number of the others.
std::string standing_in_words(std::span<const std::string> sentences);

}  // namespace commfuse::validate
