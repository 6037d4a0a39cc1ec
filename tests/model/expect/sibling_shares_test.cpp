// SPDX-License-Identifier: Apache-2.0
#include "model/expect/sibling_shares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace commfuse {
namespace {

/// Returns the log-likelihood of each tried share, given the medians of eight collectives. A median's own error is
/// hypot(0.02, share x 0.1), where 0.1 is the residual.
ShareLikelihood likelihood_of(double median, Limit limit) {
  ShareLikelihood likelihood;
  for (const double share : tried_shares()) {
    std::vector<ClassHalf> halves;
    for (int i = 0; i < 8; ++i) {
      halves.push_back({.limit = limit,
                        .median = i % 2 == 0 ? median : -median,
                        .shared_error = 0.001,
                        .own_error = std::hypot(0.02, 0.1 * share)});
    }
    likelihood.push_back(healthy_likelihood(halves, limit));
  }
  return likelihood;
}

TEST(SiblingSharesTest, FindsTheShareThatMadeTheMedians) {
  const std::vector<ShareLikelihood> nodes(40, likelihood_of(std::hypot(0.02, 0.1 * 0.4), Limit::bandwidth));
  EXPECT_NEAR(share_of(nodes), 0.4, 0.02);
}

TEST(SiblingSharesTest, MoreNodesSharpenTheShareAndNoNodesGiveTheMean) {
  EXPECT_DOUBLE_EQ(share_of({}), 0.5);
  const std::vector<ShareLikelihood> equal_medians{likelihood_of(0.0, Limit::bandwidth)};
  EXPECT_GT(share_of(equal_medians), 0.02);
  EXPECT_LT(share_of(equal_medians), 0.2);
  EXPECT_LT(share_of(std::vector<ShareLikelihood>(40, equal_medians.front())), share_of(equal_medians));
  const std::vector<ShareLikelihood> distant_medians{likelihood_of(0.5, Limit::bandwidth)};
  EXPECT_GT(share_of(distant_medians), 0.9);
}

TEST(SiblingSharesTest, AnOutlierMovesTheLatencyShareLessThanTheBandwidthShare) {
  std::vector<ClassHalf> halves(8, {.limit = Limit::latency, .median = 0.0, .shared_error = 0.001, .own_error = 0.0});
  const auto share_with = [&](Limit limit) {
    ShareLikelihood likelihood;
    for (const double share : tried_shares()) {
      for (ClassHalf& half : halves) {
        half.limit = limit;
        half.own_error = std::hypot(0.02, 0.1 * share);
      }
      halves.front().median = 0.6;
      likelihood.push_back(healthy_likelihood(halves, limit));
    }
    return share_of(std::vector<ShareLikelihood>{likelihood});
  };
  EXPECT_LT(share_with(Limit::latency), share_with(Limit::bandwidth));
}

TEST(SiblingSharesTest, HalvesOfTheOtherLimitAreIgnored) {
  const std::vector<ClassHalf> halves{{.limit = Limit::latency, .median = 9.0, .shared_error = 0.1, .own_error = 0.1}};
  EXPECT_EQ(healthy_likelihood(halves, Limit::bandwidth), 0.0);
  EXPECT_LT(healthy_likelihood(halves, Limit::latency), 0.0);
}

}  // namespace
}  // namespace commfuse
