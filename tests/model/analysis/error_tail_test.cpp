// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/error_tail.h"

#include <gtest/gtest.h>

#include <limits>

namespace commfuse {
namespace {

TEST(ErrorTail, OneStandardErrorCoversAsMuchAsInANormalDistribution) {
  EXPECT_EQ(share_below(0.0), 0.5);
  EXPECT_NEAR(share_below(1.0), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(share_below(-1.0), 0.15865525393145707, 1e-15);
}

TEST(ErrorTail, IsStudentsTWithFourDegreesOfFreedom) {
  // The arguments are quantiles of the distribution, 0.7407, 2.1318 and 2.7764, divided by 1.1416.
  EXPECT_NEAR(share_below(0.6488085204376139), 0.75, 1e-14);
  EXPECT_NEAR(share_below(1.8673765415091808), 0.95, 1e-14);
  EXPECT_NEAR(share_below(2.4320080089657694), 0.975, 1e-14);
}

TEST(ErrorTail, FindsErrorsByTheirShare) {
  EXPECT_NEAR(errors_with_share_below(0.5), 0.0, 1e-15);
  EXPECT_NEAR(errors_with_share_below(0.95), 1.8673765415091808, 1e-12);
  for (const double z : {-6.0, -1.0, -0.01, 0.3, 2.5}) {
    EXPECT_NEAR(errors_with_share_below(share_below(z)), z, 1e-9);
  }
}

TEST(ErrorTail, GrowsFromZeroToOne) {
  EXPECT_EQ(share_below(std::numeric_limits<double>::infinity()), 1.0);
  EXPECT_EQ(share_below(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_NEAR(share_below(1e200), 1.0, 1e-15);
  double before = 0.0;
  for (double z = -12.0; z <= 12.0; z += 0.01) {
    EXPECT_GE(share_below(z), before);
    before = share_below(z);
  }
}

}  // namespace
}  // namespace commfuse
