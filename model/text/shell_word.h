// SPDX-License-Identifier: Apache-2.0
// Words of a command line that is printed for users to copy.
#pragma once

#include <string>

namespace commfuse {

/// Returns the word as a POSIX shell needs it: in single quotes if necessary.
std::string shell_word(const std::string& word);

}  // namespace commfuse
