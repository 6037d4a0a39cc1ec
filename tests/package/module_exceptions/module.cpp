// SPDX-License-Identifier: Apache-2.0
// Represents the MPI module: throws an exception across its boundary.
#include <stdexcept>
#include <string>

extern "C" __attribute__((visibility("default"))) void throw_from(int depth) {
  if (depth == 0) {
    throw std::runtime_error("thrown by the module");
  }
  throw_from(depth - 1);
}
