// SPDX-License-Identifier: Apache-2.0
// Tests that every schedule computes the unfused operation, and that a wrong schedule is caught.
#include "validate/reference/verify.h"
#include "tests/slow_build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "model/program/builder.h"
#include "model/proof/check_program.h"
#include "model/proof/mutate.h"
#include "model/strategies/scope.h"
#include "tests/validate/reference/matrices.h"
#include "validate/reference/interpreter.h"

namespace commfuse::validate {
namespace {

using test::all_points_of;
using test::operation_named;
using test::points_of;
using test::shared;

/// True if only slices, form, dtype and the lane of adds differ from their defaults.
bool plainest(const StrategyOptions& options) {
  StrategyOptions plain{.slices = options.slices, .form = options.form, .dtype = options.dtype};
  plain.add_lane = options.add_lane;
  return options == plain;
}

/// True if this test leaves the point to `commfuse-validate check`. The test covers every kind of schedule at a single
/// site on a few ranks, and a few kinds in chains of sites.
bool is_left_to_the_check(const CheckPoint& point) {
  const std::string_view strategy = point.strategy->name;
  if ((strategy == "sliced" && point.options.slices > 2) || point.options.sub_slices > 2) {
    return true;
  }
  const bool cut = point.options.attention != AttentionCut::whole;
  if (cut && (point.ranks == 4 || point.operation->name == "layer" || point.options.add_lane == LaneKind::aux)) {
    return true;
  }
  const bool single_site = point.operation->operation.stages.size() == 1;
  if (strategy == "serial" || strategy == "sliced" || strategy == "commfuse") {
    return !single_site && text_of(*option_named("shuffles"), point.options) == "copied";
  }
  return single_site ? point.ranks > 3 : strategy != "tokenweave" || point.ranks > 2;
}

class EveryRankCount : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(OneToEight, EveryRankCount, testing::Range(1, slow_build ? 5 : 9));

void expect_right(const CheckPoint& point) {
  const CheckResult result = check_point(point);
  const std::string what = program_of(point).name + " " + std::string{name_of(point.options.dtype)};
  EXPECT_EQ(result.findings, std::vector<std::string>{}) << what;
  EXPECT_GT(result.verdict.integers.elements, 0) << what;
  EXPECT_EQ(result.verdict.integers.wrong, 0) << what;
  EXPECT_GT(result.verdict.bound.elements, 0) << what;
  EXPECT_EQ(result.verdict.bound.wrong, 0) << what;
  EXPECT_TRUE(result.ok()) << what;
}

TEST_P(EveryRankCount, EveryScheduleIsProvedExactOnIntegersAndInBoundOnRandomData) {
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    for (const CheckedOperation& operation : checked_operations()) {
      for (const CheckPoint& point : points_of(operation, GetParam(), dtype)) {
        if (operation.operation.stages.size() == 1 || dtype == DType::bf16 || plainest(point.options)) {
          expect_right(point);
        }
      }
    }
  }
}

class SomeRankCount : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(OneToSixteen, SomeRankCount,
                         testing::ValuesIn(slow_build ? std::vector{1, 2, 3, 4}
                                                      : std::vector{1, 2, 3, 4, 5, 7, 8, 16}));

TEST_P(SomeRankCount, EveryProvedScheduleOfAGemmSiteIsRight) {
  for (const CheckedOperation& operation : checked_operations().first(2)) {
    for (const CheckPoint& point : all_points_of(operation, GetParam())) {
      expect_right(point);
    }
  }
}

TEST_P(SomeRankCount, EqualBitsAreRequiredOfAllGatherAndGemmOnly) {
  for (const CheckPoint& point : all_points_of(checked_operations()[0], GetParam())) {
    EXPECT_TRUE(cuts_no_sum(program_of(point))) << program_of(point).name;
  }
  for (const CheckPoint& point : all_points_of(checked_operations()[1], GetParam())) {
    EXPECT_EQ(cuts_no_sum(program_of(point)), GetParam() == 1) << program_of(point).name;  // one rank multiplies once
  }
}

TEST_P(EveryRankCount, AllGatherAndGemmIsBitwiseTheUnfusedGemmOnRandomData) {
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    for (const CheckPoint& point : points_of(checked_operations()[0], GetParam(), dtype)) {
      const Verdict verdict = check_point(point).verdict;
      ASSERT_TRUE(verdict.bitwise.has_value());
      EXPECT_EQ(verdict.bitwise->elements, verdict.bound.elements) << program_of(point).name;
      EXPECT_EQ(verdict.bitwise->wrong, 0) << program_of(point).name;
    }
  }
}

TEST_P(EveryRankCount, RowBackwardIsBitwiseUnfusedWhereTheGradientIsOneGemm) {
  for (const CheckPoint& point : points_of(operation_named("gemm_rs_backward"), GetParam(), DType::bf16)) {
    if (point.strategy->name == "sliced") {
      continue;  // Sums over the tokens proceed slice by slice.
    }
    const auto program = shared(program_of(point));
    const bool by_shard = point.options.sum == Sum::arrival && GetParam() > 1;
    EXPECT_EQ(verify_bitwise(program, checked_sizes(*program)[1], 3).wrong > 0, by_shard) << program->name;
  }
}

TEST(Verify, ASumCutInTwoNeedNotHaveEqualBits) {
  // Each of these cuts a sum: an accumulating GEMM, an add, an all-reduce, and a GEMM over a part of the contraction.
  const Program whole = program_of({&checked_operations()[0], &serial_strategy, {}, 4, 1});
  EXPECT_TRUE(cuts_no_sum(whole));
  const auto with_shape = [&](const Shape& shape) {
    Program program = whole;
    program.shapes.push_back(shape);
    return program;
  };
  GemmShape gemm = std::get<GemmShape>(whole.shapes[whole.ops.back().shape]);
  gemm.accumulate = true;
  EXPECT_FALSE(cuts_no_sum(with_shape(gemm)));
  EXPECT_FALSE(cuts_no_sum(with_shape(ElementwiseShape{.function = Function::add})));
  EXPECT_FALSE(cuts_no_sum(with_shape(CollectiveShape{.kind = CollectiveKind::all_reduce})));
  EXPECT_FALSE(cuts_no_sum(with_shape(CollectiveShape{.kind = CollectiveKind::reduce_scatter})));
  gemm.accumulate = false;
  gemm.k = whole.tensors.front().rows;  // four blocks of tokens
  gemm.k.blocks = 1;
  EXPECT_FALSE(cuts_no_sum(with_shape(gemm)));
  EXPECT_TRUE(cuts_no_sum(with_shape(ElementwiseShape{.function = Function::residual})));
  EXPECT_TRUE(cuts_no_sum(with_shape(CollectiveShape{.kind = CollectiveKind::all_to_all})));
}

TEST(Verify, AWireThatRoundsOnlySomeRowsOfAStackNeedNotKeepBits) {
  const auto keeps_bits = [](DType dtype_below) {
    ProgramBuilder builder("by hand", Mesh{{{"tp", 2}}});
    const Extent rows{builder.dimension("rows", 1), 1};
    const Extent columns{builder.dimension("columns", 1), 1};
    const BufferId above = builder.buffer("above", BufferRole::scratch, rows, columns, DType::bf16);
    const BufferId below = builder.buffer("below", BufferRole::scratch, rows, columns, dtype_below);
    builder.exchange({.send = {builder.whole(above), builder.whole(below)}, .wire = DType::bf16});
    return cuts_no_sum(std::move(builder).build());
  };
  EXPECT_TRUE(keeps_bits(DType::bf16));
  EXPECT_FALSE(keeps_bits(DType::fp32));
}

TEST(Verify, WrongBitsFailThePoint) {
  Verdict verdict{.integers = {.elements = 1}, .bitwise = Tally{.elements = 2, .wrong = 1}, .bound = {.elements = 1}};
  EXPECT_FALSE(verdict.ok());
  verdict.bitwise->wrong = 0;
  EXPECT_TRUE(verdict.ok());
  verdict.bitwise = Tally{};  // requested, but nothing was compared
  EXPECT_FALSE(verdict.ok());
  verdict.bitwise.reset();
  EXPECT_TRUE(verdict.ok());
  verdict += Verdict{.integers = {}, .bitwise = Tally{.elements = 3}, .bound = {}};
  EXPECT_EQ(verdict.bitwise->elements, 3);
}

TEST(Verify, TheBoundIsTightEnoughToBeMissed) {
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    const CheckPoint point{&checked_operations()[0], &commfuse_strategy, {.dtype = dtype}, 4, 1};
    EXPECT_GT(check_point(point).verdict.bound.worst, 0.1) << name_of(dtype);
  }
}

TEST(Verify, ReduceScatterOnRandomDataDependsOnTheOrderOfTheSum) {
  // Shows why level T2 is required of all-gather only: the ring adds partial sums in a different order on every rank.
  const CheckPoint point{&checked_operations()[1], &commfuse_strategy, {.dtype = DType::bf16}, 8, 1};
  const auto program = shared(program_of(point));
  EXPECT_GT(verify_bitwise(program, checked_sizes(*program)[1], 3).wrong, 0);
}

TEST(Verify, GroupsOfAMeshOfTwoAxesRunIndependently) {
  const Mesh mesh{{{"node", 2}, {"tp", 3}}};
  for (const CheckedOperation& operation : checked_operations()) {
    for (const Strategy& strategy : strategies()) {
      for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(operation.operation), 2)) {
        for (const int axis : {0, 1}) {
          if (operation.operation.stages.size() > 1 && !plainest(options)) {
            continue;
          }
          const auto program = shared(generate(operation.operation, mesh, axis, strategy, options));
          EXPECT_TRUE(verify(program, checked_sizes(*program)[0], {}).ok()) << program->name << " along " << axis;
        }
      }
    }
  }
}

TEST(Verify, AWrongPeerMakesWrongElements) {
  Program program = program_of({&checked_operations()[0], &commfuse_strategy, {}, 4, 1});
  for (Shape& shape : program.shapes) {
    if (auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      exchange->shift = 2;
    }
  }
  const Verdict verdict = verify(shared(program), checked_sizes(program)[1], {});
  EXPECT_FALSE(verdict.integers.ok());
  EXPECT_FALSE(verdict.bound.ok());
  // A rank receives only its own shard and that of the rank two ahead, in wrong places, so only the rank's own row
  // block, one of four, is right.
  EXPECT_EQ(verdict.bound.elements, 4 * 32 * 6);
  EXPECT_GT(verdict.bound.wrong, verdict.bound.elements * 7 / 10);
  EXPECT_LE(verdict.bound.wrong, verdict.bound.elements * 3 / 4);
  EXPECT_GT(verdict.bound.worst, 10.0);
}

TEST(Verify, UnwrittenElementsHaveInfiniteErrors) {
  Program program = program_of({&checked_operations()[1], &serial_strategy, {}, 2, 1});
  program.ops.pop_back();
  const Verdict verdict = verify(shared(program), checked_sizes(program)[0], {});
  EXPECT_EQ(verdict.integers.wrong, verdict.integers.elements);
  EXPECT_EQ(verdict.bound.wrong, verdict.bound.elements);
  EXPECT_EQ(verdict.bound.worst, std::numeric_limits<double>::infinity());
}

TEST(Verify, ComparingNothingIsNotRight) { EXPECT_FALSE(Tally{}.ok()); }

/// True if the program has no findings, or can be lowered in spite of the first one.
bool can_run(const CheckReport& report) {
  return report.ok() || report.findings.front().kind == FindingKind::deadlock ||
         report.findings.front().kind == FindingKind::hazard || report.findings.front().kind == FindingKind::contents;
}

bool runs_right(const Program& program) {
  try {
    return verify(shared(program), checked_sizes(program)[0], {.seed = 7, .orders = 40}).integers.ok();
  } catch (const Stuck&) {
    return false;
  }
}

class EveryMutation : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(TwoToFour, EveryMutation, testing::Range(2, slow_build ? 3 : 5));

// Two independent judges, the proof and the run, agree on every small mistake.
TEST_P(EveryMutation, IsProvedRightExactlyWhenItRunsRight) {
  int right = 0;
  int wrong = 0;
  for (const CheckedOperation& operation : checked_operations()) {
    for (const CheckPoint& point : points_of(operation, GetParam(), DType::bf16)) {
      const bool chain = operation.operation.stages.size() > 1;
      if (is_left_to_the_check(point) || (chain && !plainest(point.options))) {
        continue;
      }
      for (const Mutation& mutation : mutations_of(program_of(point))) {
        const CheckReport report = check_program(mutation.program);
        if (can_run(report)) {
          EXPECT_EQ(runs_right(mutation.program), report.ok())
              << mutation.program.name << ": " << mutation.description << ": "
              << (report.ok() ? "proved" : report.findings.front().sentence);
          ++(report.ok() ? right : wrong);
        }
      }
    }
  }
  EXPECT_GT(right, 5);
  EXPECT_GT(wrong, 100);
}

}  // namespace
}  // namespace commfuse::validate
