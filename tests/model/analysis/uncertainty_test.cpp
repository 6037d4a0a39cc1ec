// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/uncertainty.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

PricedShape product(std::int64_t m) { return {.size = {m, 1, 1}}; }

TEST(Uncertainty, ErrorsThatAreIndependentAddBySquares) {
  const Uncertainty time{{{std::size_t{3}, 0.03}, {product(8), -0.04}}};
  EXPECT_DOUBLE_EQ(error_of(time), 0.05);
  EXPECT_EQ(error_of({}), 0.0);
}

TEST(Uncertainty, WhatTwoTimesHangOnAlikeCancels) {
  const Uncertainty a{{{std::size_t{3}, 0.10}, {product(8), 0.03}}};
  const Uncertainty b{{{std::size_t{3}, 0.10}, {product(64), 0.04}}};
  EXPECT_DOUBLE_EQ(ratio_error(a, b), 0.05);
  EXPECT_EQ(ratio_error(a, a), 0.0);
  EXPECT_EQ(ratio_error(a, b), ratio_error(b, a));
}

TEST(Uncertainty, AParameterComesBeforeAShapeAndNoneIsCountedTwice) {
  const Uncertainty a{{{std::size_t{1}, 0.01}, {std::size_t{9}, 0.02}}};
  const Uncertainty b{{{std::size_t{9}, 0.05}, {product(8), 0.04}}};
  EXPECT_DOUBLE_EQ(ratio_error(a, b), std::sqrt(0.01 * 0.01 + 0.03 * 0.03 + 0.04 * 0.04));
}

TEST(Uncertainty, OneStandardErrorApartIs84Percent) {
  const Uncertainty doubt{{{std::size_t{0}, std::log(2.0)}}};
  // ln(2 us / 1 us) is one error of the ratio: S(1) = Phi(1).
  EXPECT_NEAR(probability_shorter(1us, doubt, 2us, {}), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(probability_shorter(2us, {}, 1us, doubt), 0.15865525393145707, 1e-15);
  EXPECT_EQ(probability_shorter(1us, doubt, 1us, {}), 0.5);
}

TEST(Uncertainty, WithoutDoubtTheShorterIsTheShorter) {
  EXPECT_EQ(probability_shorter(1us, {}, 2us, {}), 1.0);
  EXPECT_EQ(probability_shorter(2us, {}, 1us, {}), 0.0);
  const Uncertainty shared{{{std::size_t{0}, 0.5}}};
  EXPECT_EQ(probability_shorter(1us, shared, 2us, shared), 1.0);
}

}  // namespace
}  // namespace commfuse
