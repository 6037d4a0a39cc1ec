// SPDX-License-Identifier: Apache-2.0
// The message of an exception that a test provokes.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace commfuse::validate::test {

/// Returns the message of the std::runtime_error that `work` throws, or "nothing was thrown".
inline std::string thrown_by(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace commfuse::validate::test
