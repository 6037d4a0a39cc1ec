// SPDX-License-Identifier: Apache-2.0
#include "model/wrapped.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(Wrapped, BreaksAtTheLastSpaceThatFits) {
  EXPECT_EQ(wrapped("one two three", "", "", 7), "one two\nthree\n");
  EXPECT_EQ(wrapped("one two three", "", "", 6), "one\ntwo\nthree\n");
  EXPECT_EQ(wrapped("one two three", "", "", 13), "one two three\n");
  EXPECT_EQ(wrapped("one two three", "", "", 12), "one two\nthree\n");
}

TEST(Wrapped, IndentsTheFirstLineAndTheLaterOnesApart) {
  EXPECT_EQ(wrapped("one two three", "  ", "     ", 9), "  one two\n     three\n");
  EXPECT_EQ(wrapped("one two three", "  ", "     ", 8), "  one\n     two\n     three\n");
}

TEST(Wrapped, AWordThatIsTooLongHasALineOfItsOwn) {
  EXPECT_EQ(wrapped("a incomprehensibilities b", "", "  ", 5), "a\n  incomprehensibilities\n  b\n");
}

TEST(Wrapped, NothingIsAnEmptyLine) { EXPECT_EQ(wrapped("", "  ", ""), "  \n"); }

}  // namespace
}  // namespace commfuse
