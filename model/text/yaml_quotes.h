// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace commfuse {

/// Returns the text as a YAML scalar in double quotes, with escapes for quotes, backslashes and control characters.
std::string yaml_quoted(std::string_view text);

}  // namespace commfuse
