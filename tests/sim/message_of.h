// SPDX-License-Identifier: Apache-2.0
// Messages of exceptions, for tests of error messages.
#pragma once

#include <string>

#include "model/config_error.h"

namespace commfuse::test {

/// Returns the message of the exception that `call` throws; empty if it throws none.
template <class Error = ConfigError, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace commfuse::test
