// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/uncertainty.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

PricedShape gemm_of_rows(std::int64_t m) { return {.size = {m, 1, 1}}; }

TEST(Uncertainty, IndependentErrorsAddInQuadrature) {
  const Uncertainty time{{{std::size_t{3}, 0.03}, {gemm_of_rows(8), -0.04}}};
  EXPECT_DOUBLE_EQ(error_of(time), 0.05);
  EXPECT_EQ(error_of({}), 0.0);
}

TEST(Uncertainty, SharedDependenciesOfTwoTimesCancel) {
  const Uncertainty a{{{std::size_t{3}, 0.10}, {gemm_of_rows(8), 0.03}}};
  const Uncertainty b{{{std::size_t{3}, 0.10}, {gemm_of_rows(64), 0.04}}};
  EXPECT_DOUBLE_EQ(ratio_error(a, b), 0.05);
  EXPECT_EQ(ratio_error(a, a), 0.0);
  EXPECT_EQ(ratio_error(a, b), ratio_error(b, a));
}

TEST(Uncertainty, AParameterComesBeforeAShapeAndNoneIsCountedTwice) {
  const Uncertainty a{{{std::size_t{1}, 0.01}, {std::size_t{9}, 0.02}}};
  const Uncertainty b{{{std::size_t{9}, 0.05}, {gemm_of_rows(8), 0.04}}};
  EXPECT_DOUBLE_EQ(ratio_error(a, b), std::sqrt(0.01 * 0.01 + 0.03 * 0.03 + 0.04 * 0.04));
}

TEST(Uncertainty, OneStandardErrorApartIs84Percent) {
  const Uncertainty doubt{{{std::size_t{0}, std::log(2.0)}}};
  // ln(2 us / 1 us) is one standard error of the ratio. At one standard error, the distribution of errors
  // (error_tail.h) equals the normal one, Phi(1).
  EXPECT_NEAR(probability_shorter(1us, doubt, 2us, {}), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(probability_shorter(2us, {}, 1us, doubt), 0.15865525393145707, 1e-15);
  EXPECT_EQ(probability_shorter(1us, doubt, 1us, {}), 0.5);
}

TEST(Uncertainty, WithoutDoubtTheShorterTimeIsCertain) {
  EXPECT_EQ(probability_shorter(1us, {}, 2us, {}), 1.0);
  EXPECT_EQ(probability_shorter(2us, {}, 1us, {}), 0.0);
  const Uncertainty shared{{{std::size_t{0}, 0.5}}};
  EXPECT_EQ(probability_shorter(1us, shared, 2us, shared), 1.0);
}

// Two doubts of 0.3 and 0.4 make an error of 0.5. The measured time has both doubts, and ln(measured / predicted)
// is 0.1.
TEST(Evidence, LeavesNoUncertaintyInTheMeasuredTime) {
  const Uncertainty measured{{{std::size_t{0}, 0.3}, {StepDoubt{"a"}, 0.4}}};
  const Evidence evidence{measured, 0.1};
  EXPECT_DOUBLE_EQ(expected_log_ratio(measured, evidence), 0.1);
  EXPECT_NEAR(error_of(given(measured, evidence)), 0.0, 1e-15);
}

// The other time shares only the first doubt. Its expected log ratio is 0.3 x 0.3 / 0.25 of 0.1, and its variance of
// 0.18 falls by 0.09^2 / 0.25.
TEST(Evidence, CarriesSharedDoubtOverToAnotherTime) {
  const Evidence evidence{{{{std::size_t{0}, 0.3}, {StepDoubt{"a"}, 0.4}}}, 0.1};
  const Uncertainty other{{{std::size_t{0}, 0.3}, {StepDoubt{"b"}, 0.3}}};
  EXPECT_DOUBLE_EQ(expected_log_ratio(other, evidence), 0.036);
  EXPECT_DOUBLE_EQ(error_of(given(other, evidence)), std::sqrt(0.18 - 0.0324));
}

TEST(Evidence, DoesNotChangeATimeWithoutSharedDoubt) {
  const Evidence evidence{{{{std::size_t{0}, 0.3}}}, 0.1};
  const Uncertainty other{{{std::size_t{1}, 0.2}}};
  EXPECT_EQ(expected_log_ratio(other, evidence), 0.0);
  EXPECT_DOUBLE_EQ(error_of(given(other, evidence)), 0.2);
}

// Given the evidence, the doubt that both times still share cancels in their ratio, which keeps the doubts that only
// one of them has: 0.3 and 0.4.
TEST(Evidence, LeavesTheDoubtsThatTwoTimesDoNotShareInTheirRatio) {
  const Evidence evidence{{{{std::size_t{0}, 0.3}, {StepDoubt{"a"}, 0.4}}}, 0.1};
  const Uncertainty b{{{std::size_t{0}, 0.3}, {StepDoubt{"b"}, 0.3}}};
  const Uncertainty c{{{std::size_t{0}, 0.3}, {StepDoubt{"c"}, 0.4}}};
  EXPECT_DOUBLE_EQ(ratio_error(given(b, evidence), given(c, evidence)), 0.5);
}

}  // namespace
}  // namespace commfuse
