// SPDX-License-Identifier: Apache-2.0
// Formats the message about a string that is not the expected quantity.
#pragma once

#include <string>
#include <string_view>

namespace commfuse {

/// Returns "'4 GB' is not a bandwidth; write a number and a unit", or, for a quantity such as 010, a message with the
/// form to write. `what` includes its article.
std::string misread(std::string_view text, std::string_view what, std::string_view remedy);

}  // namespace commfuse
