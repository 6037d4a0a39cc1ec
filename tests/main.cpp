// SPDX-License-Identifier: Apache-2.0
// Replaces gtest's main: tests read the shipped files of this tree, and print text without colour in the width of the
// goldens, regardless of the caller's environment.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("COMMFUSE_CONFIG_DIR", COMMFUSE_SOURCE_DIR "/configs",
         1);                   // NOLINT(concurrency-mt-unsafe): no other threads run yet
  setenv("COLUMNS", "80", 1);  // NOLINT(concurrency-mt-unsafe)
  setenv("NO_COLOR", "1", 1);  // NOLINT(concurrency-mt-unsafe)
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
