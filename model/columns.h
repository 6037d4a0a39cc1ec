// SPDX-License-Identifier: Apache-2.0
// Fits untrusted text into a column of a table.
#pragma once

#include <cstddef>
#include <string>

namespace commfuse {

/// Returns `text` with at most `width` UTF-8 characters; a string that is cut ends in "..". Requires a width of at
/// least 2.
std::string cut(std::string text, std::size_t width);

}  // namespace commfuse
