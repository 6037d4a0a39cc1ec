// SPDX-License-Identifier: Apache-2.0
#include "model/terminal_style.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(TerminalStyle, MarksBoldAndColor) {
  const TerminalStyle style(true);
  EXPECT_EQ(style.bold("won"), "\x1b[1mwon\x1b[0m");
  EXPECT_EQ(style.red("late"), "\x1b[31mlate\x1b[0m");
  EXPECT_EQ(style.gray("busy"), "\x1b[90mbusy\x1b[0m");
}

TEST(TerminalStyle, EndsBeforeALineBreak) { EXPECT_EQ(TerminalStyle(true).bold("a line\n"), "\x1b[1ma line\x1b[0m\n"); }

TEST(TerminalStyle, DoesNotChangeTextIfOff) {
  EXPECT_EQ(TerminalStyle().bold("won"), "won");
  EXPECT_EQ(TerminalStyle(true).red(""), "");
}

}  // namespace
}  // namespace commfuse
