// SPDX-License-Identifier: Apache-2.0
#include "model/columns.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(Columns, ShortTextStays) {
  EXPECT_EQ(cut("", 4), "");
  EXPECT_EQ(cut("ring", 4), "ring");
}

TEST(Columns, LongTextIsCutWithAMark) { EXPECT_EQ(cut("rings", 4), "ri.."); }

TEST(Columns, LettersAreCountedNotBytes) {
  EXPECT_EQ(cut("öäüß", 4), "öäüß");
  EXPECT_EQ(cut("öäüßx", 4), "öä..");
}

}  // namespace
}  // namespace commfuse
