// SPDX-License-Identifier: Apache-2.0
// Tests transfers in fewer bits than the tensors have: the interpreter and executors round identically, and the bounds
// hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/program/narrowed.h"
#include "tests/validate/cuda/ring_program.h"
#include "tests/validate/reference/matrices.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/reference/check_point.h"
#include "validate/reference/data.h"
#include "validate/reference/interpreter.h"
#include "validate/reference/rounding.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {
namespace {

using test::operation_named;
using test::points_of;
using test::shared;

class WireOfEightBits : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(TwoAndThree, WireOfEightBits, testing::Range(2, 4));

constexpr std::array few_operations{"ag_gemm", "gemm_rs", "mlp_swiglu", "attention"};

TEST_P(WireOfEightBits, EveryScheduleStaysInItsBounds) {
  int narrowed_programs = 0;
  for (const char* name : few_operations) {
    const auto& operation = operation_named(name);
    for (CheckPoint point : points_of(operation, GetParam(), DType::bf16)) {
      const Program wide = program_of(point);
      point.wire = DType::fp8;
      const CheckResult result = check_point(point);
      EXPECT_TRUE(result.ok()) << wide.name;
      if (!(program_of(point).shapes == wide.shapes)) {
        EXPECT_FALSE(result.verdict.bitwise.has_value()) << wide.name;  // not the unfused operation's bits
        ++narrowed_programs;
      }
    }
  }
  EXPECT_GT(narrowed_programs, 20);
}

TEST_P(WireOfEightBits, ThreadsGiveTheInterpretersBits) {
  const CheckHow how{.name = "cpu",
                     .executor =
                         [](Lowered lowered, Sizes sizes) {
                           return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{});
                         },
                     .orders = 2};
  for (const char* name : {"ag_gemm", "gemm_rs"}) {
    const auto& operation = operation_named(name);
    for (CheckPoint point : points_of(operation, GetParam(), DType::bf16)) {
      point.wire = DType::fp8;
      const CheckResult result = check_point(point, how);
      EXPECT_TRUE(result.ok()) << program_of(point).name;
      EXPECT_TRUE(result.verdict.moved.has_value() && result.verdict.same_order.has_value());
    }
  }
}

// Data from another rank is rounded, and a rank's own data is not.
TEST(Wire, RoundsOnlyDataOfOtherRanks) {
  const auto program = shared(test::ring(2, Protocol::rendezvous, DType::bf16, DType::fp8));
  const Sizes sizes = checked_sizes(*program)[0];
  const std::int64_t rows = sizes.block[0];
  Interpreter interpreter(lower(program), sizes);
  const std::vector<Matrix<float>> inputs = input_data(*program, sizes, DataKind::random, 1);
  interpreter.prepare(inputs);
  interpreter.run({});
  const Rectangle everything{BufferId{1}, 0, 0, 2, 1};
  const Matrix<float> result = interpreter.fetch(1, everything);
  int rounded = 0;
  for (std::int64_t row = 0; row < 2 * rows; ++row) {
    for (std::int64_t column = 0; column < result.columns(); ++column) {
      const float original = inputs[0].at(row, column);
      EXPECT_EQ(result.at(row, column), row < rows ? stored(DType::fp8, original) : original);
      rounded += stored(DType::fp8, original) != original ? 1 : 0;
    }
  }
  EXPECT_GT(rounded, 0);
}

TEST(Wire, TagsFitIntoEightBits) {
  const auto& ag = operation_named("ag_gemm");
  const auto program = shared(program_of({&ag, &commfuse_strategy, {}, 3, 1, {}, DType::fp8}));
  const Sizes sizes = checked_sizes(*program)[0];
  for (const Matrix<float>& tensor : input_data(*program, sizes, DataKind::tags, 1)) {
    for (const float value : tensor.values()) {
      EXPECT_LE(std::abs(value), 448.0F);
    }
  }
}

}  // namespace
}  // namespace commfuse::validate
