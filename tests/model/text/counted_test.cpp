// SPDX-License-Identifier: Apache-2.0
#include "model/text/counted.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace commfuse {
namespace {

TEST(Counted, ASingleThingIsSingular) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(std::size_t{12345}, "rank"), "12345 ranks");
  EXPECT_EQ(counted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(counted(2, "entry", "entries"), "2 entries");
}

}  // namespace
}  // namespace commfuse
