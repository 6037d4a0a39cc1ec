// SPDX-License-Identifier: Apache-2.0
// Tests comparisons of ops: a GEMM and an exchange on two ranks are predicted, measured and summed by hand.
#include "validate/compare/op_comparison.h"

#include <gtest/gtest.h>

#include "tests/validate/span.h"
#include "validate/bench/micro_program.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;
using test::span;

constexpr OpId gemm{0};
constexpr OpId exchange{1};

const Timeline predicted{span(0, gemm, 0us, 10us), span(0, exchange, 0us, 4us), span(1, gemm, 0us, 10us),
                         span(1, exchange, 0us, 4us)};

std::shared_ptr<const Program> program() {
  return beside_each_other(2, {.m = 64, .n = 64, .k = 64}, {4096}, 1, Watched::product).program;
}

TEST(ComparedOps, AreSummedOverRanksByKind) {
  const Timeline measured{span(0, gemm, 1us, 12us), span(0, exchange, 0us, 9us), span(1, gemm, 0us, 10us),
                          span(1, exchange, 2us, 9us)};
  const ComparedOps ops = compared_ops(*program(), predicted, measured);
  EXPECT_EQ(ops.kinds, (std::vector<OpTimes>{{.what = "gemm", .ops = 2, .predicted = 20us, .measured = 21us},
                                             {.what = "exchange", .ops = 2, .predicted = 8us, .measured = 16us}}));
  EXPECT_DOUBLE_EQ(ops.kinds.back().ratio(), 2.0);
  EXPECT_EQ(ops.furthest.measured, 16us);
  EXPECT_NE(ops.furthest.what.find("exchange"), std::string::npos) << ops.furthest.what;
}

TEST(ComparedOps, ATooFastOpIsAnOutlierToo) {
  Timeline measured = predicted;
  measured[0].end = Instant(1us);
  const ComparedOps ops = compared_ops(*program(), predicted, measured);
  EXPECT_EQ(ops.furthest.measured, 11us);
  EXPECT_EQ(ops.furthest.predicted, 20us);
}

TEST(ComparedOps, DifferentRanksOrOpsAreAnotherSchedule) {
  EXPECT_TRUE(same_ops(predicted, predicted));
  Timeline other = predicted;
  other.pop_back();
  EXPECT_FALSE(same_ops(predicted, other));
  other.push_back(span(1, gemm, 0us, 4us));
  EXPECT_FALSE(same_ops(predicted, other));
}

TEST(ComparedOps, VirtualRanksAreComparedOnTheRankThatRan) {
  Timeline of_both = predicted;
  for (OpSpan other : predicted) {
    other.rank = 7;
    of_both.push_back(other);
  }
  EXPECT_FALSE(same_ops(of_both, predicted));
  EXPECT_TRUE(same_ops(of_measured_ranks(of_both, predicted), predicted));
  EXPECT_TRUE(of_measured_ranks(of_both, {}).empty());
}

}  // namespace
}  // namespace commfuse::validate
