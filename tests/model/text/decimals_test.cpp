// SPDX-License-Identifier: Apache-2.0
#include "model/text/decimals.h"

#include <gtest/gtest.h>

#include <limits>

namespace commfuse {
namespace {

TEST(Decimals, ZeroHasNoSign) {
  EXPECT_EQ(with_decimals(-0.3, 0), "0");
  EXPECT_EQ(with_decimals(-0.04, 1), "0.0");
  EXPECT_EQ(with_decimals(-0.06, 1), "-0.1");
  EXPECT_EQ(with_decimals(12.34, 1), "12.3");
  EXPECT_EQ(with_sign(-0.04, 1), "0.0");
  EXPECT_EQ(with_sign(0.04, 1), "0.0");
  EXPECT_EQ(with_sign(0.06, 1), "+0.1");
  EXPECT_EQ(with_sign(-12.0, 0), "-12");
  EXPECT_EQ(with_sign(std::numeric_limits<double>::infinity(), 1), "+inf");
}

}  // namespace
}  // namespace commfuse
