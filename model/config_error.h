// SPDX-License-Identifier: Apache-2.0
// Errors that the user can mend, and errors for missing hardware: each is one sentence with the remedy, ready to print.
#pragma once

#include <stdexcept>
#include <string>

namespace commfuse {

/// Mistake of the user, on which the programs exit with 2. what() reads `path:line:col: sentence; remedy`, or only
/// `sentence; remedy` when the mistake is in no file.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Error for a request that needs a device, a driver or a part of the program that is absent; what() is one sentence
/// with the remedy. The programs exit with 69 on it.
class HardwareAbsent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace commfuse
