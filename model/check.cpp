// SPDX-License-Identifier: Apache-2.0
#include "model/check.h"

#include <cstdio>
#include <cstdlib>

namespace commfuse::detail {

void check_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error, please report it: %s\n", file, line, what);
  std::abort();
}

}  // namespace commfuse::detail
