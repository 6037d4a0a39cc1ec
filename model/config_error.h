// SPDX-License-Identifier: Apache-2.0
// The user's mistakes, and what his machine lacks: one sentence with the remedy, ready to print.
#pragma once

#include <stdexcept>
#include <string>

namespace commfuse {

/// The programs exit with 2 on it. what() reads `path:line:col: sentence; remedy`, or only `sentence; remedy` where the
/// mistake is in no file.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What was asked for needs a device, a driver or a part of the program that is not here; what() is one sentence with
/// the remedy. The programs exit with 69 on it.
class HardwareAbsent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace commfuse
