// SPDX-License-Identifier: Apache-2.0
// As gtest's own main, whatever the caller's environment says: with the shipped files of this tree, and text as wide as
// the goldens and without colour.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("COMMFUSE_CONFIG_DIR", COMMFUSE_SOURCE_DIR "/configs",
         1);                   // NOLINT(concurrency-mt-unsafe): before the threads
  setenv("COLUMNS", "80", 1);  // NOLINT(concurrency-mt-unsafe)
  setenv("NO_COLOR", "1", 1);  // NOLINT(concurrency-mt-unsafe)
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
