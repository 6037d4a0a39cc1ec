// SPDX-License-Identifier: Apache-2.0
// Errors that the user can fix, and errors for missing hardware. Each is one sentence with the remedy, ready to print.
#pragma once

#include <stdexcept>
#include <string>

namespace commfuse {

/// User error; the programs exit with status 2. what() is `path:line:col: sentence; remedy`, or only `sentence; remedy`
/// when the error is not in a file.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Error for a request that needs a device, a driver or a part of the program that is absent; the programs exit with
/// status 69. what() is one sentence with the remedy.
class HardwareAbsent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace commfuse
