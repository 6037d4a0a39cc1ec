// SPDX-License-Identifier: Apache-2.0
// Messages about what the program refuses.
#pragma once

#include <string>

#include "model/config_error.h"

namespace commfuse::test {

/// Returns the message of the ConfigError that `action` throws; "accepted" if it throws none.
template <class Action>
std::string refusal_of(const Action& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace commfuse::test
