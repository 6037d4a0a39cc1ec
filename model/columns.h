// SPDX-License-Identifier: Apache-2.0
// Text from a stranger in a column of a table.
#pragma once

#include <cstddef>
#include <string>

namespace commfuse {

/// At most `width` letters of UTF-8; what is cut off leaves "..". Requires a width of at least 2.
std::string cut(std::string text, std::size_t width);

}  // namespace commfuse
