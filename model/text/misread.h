// SPDX-License-Identifier: Apache-2.0
// The one sentence for text that is not the quantity it should be.
#pragma once

#include <string>
#include <string_view>

namespace commfuse {

/// "'4 GB' is not a bandwidth; write a number and a unit", or, for text such as 010, what to write instead. `what` has
/// its article.
std::string misread(std::string_view text, std::string_view what, std::string_view remedy);

}  // namespace commfuse
