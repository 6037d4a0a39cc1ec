// SPDX-License-Identifier: Apache-2.0
// Compares passes that overlap exchanges between replicas with times worked out by hand.
#include "sim/step/exchange.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <vector>

namespace commfuse {
namespace {

using std::chrono::microseconds;

constexpr PassTime layer{microseconds(10), microseconds(20)};  // Its speed is halved during an exchange.

TEST(Exchange, ALayerIsSlowOnlyWhileItsExchangeRuns) {
  EXPECT_EQ(with_exchange(layer, Duration::zero()), microseconds(10));
  // 4 us at half speed do 2 us of work; 8 us are left.
  EXPECT_EQ(with_exchange(layer, microseconds(4)), microseconds(12));
  EXPECT_EQ(with_exchange(layer, microseconds(20)), microseconds(20));
  // The layer is done after 20 us; the exchange is not.
  EXPECT_EQ(with_exchange(layer, microseconds(35)), microseconds(35));
}

TEST(Exchange, ALayerAndAnExchangeWithoutSmsTakeTheLongerTime) {
  const PassTime without_sms{microseconds(10), microseconds(10)};
  EXPECT_EQ(with_exchange(without_sms, microseconds(7)), microseconds(10));
  EXPECT_EQ(with_exchange(without_sms, microseconds(13)), microseconds(13));
}

TEST(Exchange, ReductionsSlowTheFollowingLayers) {
  const std::vector<PassTime> layers(3, layer);
  EXPECT_EQ(longer_by_reductions(layers, Duration::zero()), Duration::zero());
  // The first layer ends at 10 us; its gradients are reduced until 14 us. The second layer ends at 10 + 12 = 22 us, its
  // reduction at 26 us, the third layer at 34 us: 4 us more than 30 us.
  EXPECT_EQ(longer_by_reductions(layers, microseconds(4)), microseconds(4));
  // Reductions of 50 us overlap every later layer: 10 + 20 + 20 us.
  EXPECT_EQ(longer_by_reductions(layers, microseconds(50)), microseconds(20));
}

TEST(Exchange, LayersWaitForTheirWeights) {
  const std::vector<PassTime> layers(3, layer);
  EXPECT_EQ(longer_by_gathers(layers, Duration::zero()), Duration::zero());
  // Two gathers last until 8 us: the first layer does 4 us of its work in that time, so it ends at 14 us, the others at
  // 24 and 34 us.
  EXPECT_EQ(longer_by_gathers(layers, microseconds(4)), microseconds(4));
  // The gathers last until 60 us: the first layer ends at 20 us; the second waits until 30 us and ends at 50 us; the
  // third waits until 60 us.
  EXPECT_EQ(longer_by_gathers(layers, microseconds(30)), microseconds(40));
  // A layer does not wait for weights that have arrived: three gathers, until 90 us, slow all three layers.
  EXPECT_EQ(slowed_by(layers, microseconds(30)), microseconds(30));
  EXPECT_EQ(slowed_by(layers, microseconds(2)), microseconds(3));
}

TEST(Exchange, MoreTrafficIsNeverFaster) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> time(0, 1000);
  for (int setting = 0; setting < 2000; ++setting) {
    std::vector<PassTime> layers(static_cast<std::size_t>(1 + time(random) % 6));
    Duration slow{};
    for (PassTime& drawn : layers) {
      drawn.alone = Duration(time(random));
      drawn.overlapped = drawn.alone + Duration(time(random));
      slow += drawn.overlapped - drawn.alone;
    }
    const Duration exchange(time(random));
    const Duration longer_exchange = exchange + Duration(time(random));
    // Each layer rounds once.
    const Duration rounding(std::ssize(layers));
    for (const auto longer : {longer_by_reductions, longer_by_gathers, slowed_by}) {
      EXPECT_GE(longer(layers, exchange), -rounding);
      EXPECT_GE(longer(layers, longer_exchange) + rounding, longer(layers, exchange));
    }
    EXPECT_LE(longer_by_reductions(layers, exchange), slow + rounding);
    EXPECT_LE(slowed_by(layers, exchange), slow + rounding);
  }
}

}  // namespace
}  // namespace commfuse
