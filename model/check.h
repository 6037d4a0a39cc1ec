// SPDX-License-Identifier: Apache-2.0
// Checks for bugs in this project's own code. A failed check prints a message and aborts, in every build. User input
// never reaches a check.
#pragma once

namespace commfuse {

namespace detail {
[[noreturn]] void check_failed(const char* what, const char* file, int line);
}

/// Aborts with `what` and the caller's file and line unless `holds`. `what` states the contract as a sentence.
inline void check(bool holds, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!holds) [[unlikely]] {
    detail::check_failed(what, file, line);
  }
}

}  // namespace commfuse
