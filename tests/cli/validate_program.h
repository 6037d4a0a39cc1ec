// SPDX-License-Identifier: Apache-2.0
// Questions about commfuse-validate that several tests ask.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/cli/program.h"

namespace commfuse::test {

/// Returns the message about a wrong command line, which must exit with 2 and print nothing else.
inline std::string refusal(const std::string& arguments) {
  const Outcome outcome = run_program("commfuse-validate " + arguments);
  EXPECT_EQ(outcome.code, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  return outcome.err;
}

/// Returns whether commfuse-validate finds a GPU on this machine.
inline bool has_gpu() {
  return run_program("commfuse-validate doctor").out.find("\ncuda       yes") != std::string::npos;
}

}  // namespace commfuse::test
