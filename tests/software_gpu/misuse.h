// SPDX-License-Identifier: Apache-2.0
// Ends the process with an error where a real GPU would crash, hang or report no error at all.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace software_gpu {

/// Prints "software GPU: sentence" and aborts.
[[noreturn]] inline void misuse(const std::string& sentence) {
  std::fprintf(stderr, "software GPU: %s\n", sentence.c_str());
  std::abort();
}

inline void check(bool holds, const std::string& sentence) {
  if (!holds) {
    misuse(sentence);
  }
}

}  // namespace software_gpu
