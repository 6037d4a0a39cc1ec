// SPDX-License-Identifier: Apache-2.0
#include "model/wrapped.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace commfuse {
namespace {

TEST(Wrapped, BreaksAtTheLastSpaceThatFits) {
  EXPECT_EQ(wrapped("one two three", "", "", 7), "one two\nthree\n");
  EXPECT_EQ(wrapped("one two three", "", "", 6), "one\ntwo\nthree\n");
  EXPECT_EQ(wrapped("one two three", "", "", 13), "one two three\n");
  EXPECT_EQ(wrapped("one two three", "", "", 12), "one two\nthree\n");
}

TEST(Wrapped, IndentsTheFirstAndLaterLinesSeparately) {
  EXPECT_EQ(wrapped("one two three", "  ", "     ", 9), "  one two\n     three\n");
  EXPECT_EQ(wrapped("one two three", "  ", "     ", 8), "  one\n     two\n     three\n");
}

TEST(Wrapped, ATooLongWordHasItsOwnLine) {
  EXPECT_EQ(wrapped("a incomprehensibilities b", "", "  ", 5), "a\n  incomprehensibilities\n  b\n");
}

TEST(Wrapped, AnEmptyTextIsAnEmptyLine) { EXPECT_EQ(wrapped("", "  ", ""), "  \n"); }

/// Returns the terminal width if COLUMNS is `value`.
std::size_t width_with(const char* value) {
  ::setenv("COLUMNS", value, 1);  // NOLINT(concurrency-mt-unsafe)
  const std::size_t width = terminal_width();
  ::setenv("COLUMNS", "80", 1);  // NOLINT(concurrency-mt-unsafe)
  return width;
}

TEST(TerminalWidth, FollowsColumnsFrom60To120) {
  EXPECT_EQ(width_with("100"), 100U);
  EXPECT_EQ(width_with("20"), 60U);
  EXPECT_EQ(width_with("500"), 120U);
}

TEST(TerminalWidth, IgnoresColumnsThatAreNotANumber) {
  for (const char* value : {"", "0", "-1", "wide", "100x", "99999999999999999999999"}) {
    ::setenv("COLUMNS", value, 1);  // NOLINT(concurrency-mt-unsafe)
    EXPECT_NE(terminal_columns(), std::optional<std::size_t>(100)) << value;
  }
  ::setenv("COLUMNS", "80", 1);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace commfuse
