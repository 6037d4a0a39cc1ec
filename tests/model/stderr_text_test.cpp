// SPDX-License-Identifier: Apache-2.0
#include "model/stderr_text.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(StderrText, LongLinesAreBrokenWithTheirRestIndented) {
  EXPECT_EQ(broken_lines("one two three\nfour\n", 9), "one two\n  three\nfour\n");
  EXPECT_EQ(broken_lines("  one two three", 9), "  one two\n    three\n");
}

TEST(StderrText, ShortLinesKeepTheirSpaces) {
  EXPECT_EQ(broken_lines("a   b\n\n c\n", 9), "a   b\n\n c\n");
  EXPECT_EQ(broken_lines("", 9), "");
}

TEST(StderrText, ALongWordIsNotBroken) { EXPECT_EQ(broken_lines("abcdefghijkl m\n", 9), "abcdefghijkl\n  m\n"); }

TEST(StderrText, FilesAndPipesGetWholeSentences) {
  testing::internal::CaptureStderr();  // stderr is a file from here on
  EXPECT_EQ(
      for_stderr(
          "a sentence that is longer than a terminal of 80 columns is wide, and would be broken if it were one\n"),
      "a sentence that is longer than a terminal of 80 columns is wide, and would be broken if it were one\n");
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace commfuse
