// SPDX-License-Identifier: Apache-2.0
#include "model/expect/sibling_shares.h"

#include <gtest/gtest.h>

#include <vector>

namespace commfuse {
namespace {

ClassHalf half_of(Limit limit, double median, double own_error) {
  return {.limit = limit, .median = median, .own_error = own_error};
}

TEST(SiblingSharesTest, TheShareIsThatAtWhichErrorsExplainTheMedians) {
  // Other errors 0.03; the residual adds up to 0.05 at a share of 1. Medians of 0.034: 0.034^2 = 0.03^2 + 0.4^2 *
  // 0.04^2.
  const std::vector<ClassHalf> without{half_of(Limit::bandwidth, 0.034, 0.03), half_of(Limit::bandwidth, -0.034, 0.03)};
  const std::vector<ClassHalf> with{half_of(Limit::bandwidth, 0.034, 0.05), half_of(Limit::bandwidth, -0.034, 0.05)};
  const SiblingMoments moments = moments_of(without, with, Limit::bandwidth);
  EXPECT_NEAR(share_of(moments), 0.4, 1e-12);
  EXPECT_NEAR(share_of(mean_of(moments, 2)), 0.4, 1e-12);
}

TEST(SiblingSharesTest, SidesAreEstimatedApartAndStayBetween0And1) {
  const std::vector<ClassHalf> without{half_of(Limit::bandwidth, 0.01, 0.03), half_of(Limit::latency, 0.5, 0.03)};
  const std::vector<ClassHalf> with{half_of(Limit::bandwidth, 0.01, 0.05), half_of(Limit::latency, 0.5, 0.05)};
  EXPECT_EQ(share_of(moments_of(without, with, Limit::bandwidth)), 0.0);
  EXPECT_EQ(share_of(moments_of(without, with, Limit::latency)), 1.0);
  EXPECT_EQ(share_of({}), 1.0);  // nothing was measured, so nothing is narrowed
}

TEST(SiblingSharesTest, MomentsOfFleetsAdd) {
  SiblingMoments moments{.excess = 0.5, .residual = 4.0};
  moments += mean_of({.excess = 1.0, .residual = 8.0}, 2);
  EXPECT_EQ(moments.excess, 1.0);
  EXPECT_EQ(moments.residual, 8.0);
}

}  // namespace
}  // namespace commfuse
