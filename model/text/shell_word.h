// SPDX-License-Identifier: Apache-2.0
// Words of a command line that is printed for people to copy.
#pragma once

#include <string>

namespace commfuse {

/// The word as a POSIX shell reads it: in single quotes where it must be.
std::string shell_word(const std::string& word);

}  // namespace commfuse
