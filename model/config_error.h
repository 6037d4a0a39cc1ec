// SPDX-License-Identifier: Apache-2.0
// The user's mistakes: one sentence with the place and the remedy, ready to print. The programs exit with 2 on it.
#pragma once

#include <stdexcept>
#include <string>

namespace commfuse {

/// what() reads `path:line:col: sentence; remedy`, or only `sentence; remedy` where the mistake is in no file.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace commfuse
