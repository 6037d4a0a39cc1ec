// SPDX-License-Identifier: Apache-2.0
// Our own mistakes: print and abort, in every build. Never reachable from user input.
#pragma once

namespace commfuse {

namespace detail {
[[noreturn]] void check_failed(const char* what, const char* file, int line);
}

/// Aborts with `what` and the caller's place unless `holds`. `what` states the contract, as a sentence.
inline void check(bool holds, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!holds) [[unlikely]] {
    detail::check_failed(what, file, line);
  }
}

}  // namespace commfuse
