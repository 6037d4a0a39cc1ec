// SPDX-License-Identifier: Apache-2.0
// Tests the unfused operation and its error bound, on operations small enough to compute by hand.
#include "validate/reference/unfused.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "model/program/builder.h"
#include "tests/validate/reference/matrices.h"

namespace commfuse::validate {
namespace {

using test::matrix;

/// Returns a program for y = x w with a contraction of `parts` blocks, then a function of y if one is given. Each block
/// is one element.
Program chain(std::int32_t parts, DType dtype, std::optional<Function> function = {}, std::int32_t columns = 1) {
  ProgramBuilder builder("chain", Mesh{{{"tp", 1}}});
  const Extent rows{builder.dimension("rows", 1), 1};
  const Extent middle{builder.dimension("middle", parts), parts};
  const Extent wide{builder.dimension("columns", columns), columns};
  const TensorId x = builder.input_tensor("x", rows, middle, dtype);
  const TensorId w = builder.input_tensor("w", middle, wide, dtype);
  const TensorId y = builder.product_tensor("y", x, w);
  if (function) {
    builder.function_tensor("z", *function, y);
  }
  builder.buffer("x", BufferRole::input, rows, middle, dtype);
  return std::move(builder).build();
}

const Sizes ones{{1, 1, 1}};

TEST(Unfused, AGemmIsStoredInItsDtype) {
  const std::vector inputs{matrix({{16, 1}}), matrix({{16}, {1}}), Matrix<float>{}};
  EXPECT_EQ(unfused(chain(2, DType::fp32), ones, inputs, Functions::real)[2], matrix({{257}}));
  EXPECT_EQ(unfused(chain(2, DType::bf16), ones, inputs, Functions::real)[2], matrix({{256}}));
}

TEST(Unfused, AFunctionUsesTheStoredGemmOutput) {
  const std::vector inputs{matrix({{1}}), matrix({{3, -1}}), Matrix<float>{}, Matrix<float>{}};
  EXPECT_EQ(unfused(chain(1, DType::fp32, Function::swiglu, 2), ones, inputs, Functions::integer)[3], matrix({{-2}}));
}

TEST(Bounded, AGemmOfOneTermMayDifferByThreeRoundings) {
  const std::vector inputs{matrix({{3}}), matrix({{5}}), Matrix<float>{}};
  const Bounded y = bounded(chain(1, DType::bf16), ones, inputs)[2];
  EXPECT_EQ(y.value.at(0, 0), 15.0);
  const double gamma = (1 + 0x1p-24) * (1 + 0x1p-24) * (1 + 0x1p-8) - 1;
  EXPECT_NEAR(y.bound.at(0, 0), 15 * gamma, 1e-12);
}

TEST(Bounded, EveryPartOfTheContractionMayAddOneRoundingToItsDtype) {
  const std::vector inputs{matrix({{1, -1, 2, 4}}), matrix({{1}, {1}, {1}, {1}}), Matrix<float>{}};
  const Bounded y = bounded(chain(4, DType::bf16), ones, inputs)[2];
  EXPECT_EQ(y.value.at(0, 0), 6.0);
  const double gamma = std::pow(1 + 0x1p-24, 8) * std::pow(1 + 0x1p-8, 4) - 1;
  EXPECT_NEAR(y.bound.at(0, 0), 8 * gamma, 1e-12);  // |x||w| is 8
}

TEST(Bounded, AFunctionSpreadsTheBoundByItsSlope) {
  const std::vector inputs{matrix({{3}}), matrix({{5}}), Matrix<float>{}, Matrix<float>{}};
  const std::vector<Bounded> values = bounded(chain(1, DType::bf16, Function::gelu), ones, inputs);
  const double spread = steepest_gelu * values[2].bound.at(0, 0);
  EXPECT_NEAR(values[3].value.at(0, 0), 15.0, 1e-12);
  EXPECT_GT(values[3].bound.at(0, 0), spread);
  EXPECT_LT(values[3].bound.at(0, 0), spread + 3 * 0x1p-8 * 15.2);
}

/// Returns a program for dw = x^T dy, summed over `parts` blocks of tokens and stored in fp32, and for dx = dy w^T.
/// Each block is one element.
Program backward(std::int32_t parts) {
  ProgramBuilder builder("backward", Mesh{{{"tp", 1}}});
  const Extent tokens{builder.dimension("tokens", parts), parts};
  const Extent hidden{builder.dimension("hidden", 1), 1};
  const Extent ffn{builder.dimension("ffn", 1), 1};
  const TensorId x = builder.input_tensor("x", tokens, hidden, DType::bf16);
  const TensorId dy = builder.input_tensor("dy", tokens, ffn, DType::bf16);
  const TensorId w = builder.input_tensor("w", hidden, ffn, DType::bf16);
  builder.product_tensor("dw", x, dy, {.transpose_a = true, .dtype = DType::fp32});
  builder.product_tensor("dx", dy, w, {.transpose_b = true});
  builder.buffer("w", BufferRole::weight, hidden, ffn, DType::bf16);  // has the dimensions of dw, but never holds it
  builder.buffer("dw", BufferRole::output, hidden, ffn, DType::fp32);
  return std::move(builder).build();
}

TEST(Unfused, TransposedFactorsAreMultipliedAsWritten) {
  // x and dy are 2 x 1 and 2 x 3, w is 1 x 3: dw = x^T dy is 1 x 3 in fp32, dx = dy w^T is 2 x 1 in bf16.
  const Sizes sizes{{1, 1, 3}};
  const std::vector inputs{matrix({{16}, {1}}), matrix({{16, 2, 0}, {1, 3, 5}}), matrix({{1, 2, 3}}), Matrix<float>{},
                           Matrix<float>{}};
  const std::vector<Matrix<float>> values = unfused(backward(2), sizes, inputs, Functions::real);
  EXPECT_EQ(values[3], matrix({{257, 35, 5}}));  // fp32 holds 257
  EXPECT_EQ(values[4], matrix({{20}, {22}}));
}

TEST(Bounded, AnFp32GradientOfBf16FactorsIsRoundedAsFp32) {
  const std::vector inputs{matrix({{1}, {-1}, {2}, {4}}), matrix({{1}, {1}, {1}, {1}}), matrix({{3}}), Matrix<float>{},
                           Matrix<float>{}};
  const std::vector<Bounded> values = bounded(backward(4), ones, inputs);
  EXPECT_EQ(values[3].value.at(0, 0), 6.0);
  EXPECT_NEAR(values[3].bound.at(0, 0), 8 * (std::pow(1 + 0x1p-24, 12) - 1), 1e-12);
  EXPECT_NEAR(values[4].bound.at(0, 0), 3 * ((1 + 0x1p-24) * (1 + 0x1p-24) * (1 + 0x1p-8) - 1), 1e-12);
}

TEST(Bounded, InputsAreExact) {
  const std::vector inputs{matrix({{0.5F}}), matrix({{5}}), Matrix<float>{}};
  EXPECT_EQ(bounded(chain(1, DType::fp32), ones, inputs)[0].bound, Matrix<double>(1, 1, 0.0));
}

TEST(SumsAreExact, ComparesTheSumOfMagnitudesWithWhatTheDtypeCounts) {
  const auto exact = [](DType dtype, float x) {
    const Program program = chain(2, dtype);
    const std::array tensors{matrix({{x, -x}}), matrix({{16}, {16}}), Matrix<float>{}};
    return sums_are_exact(program, tensors);
  };
  EXPECT_TRUE(exact(DType::bf16, 8.0F));   // 128 + 128
  EXPECT_FALSE(exact(DType::bf16, 9.0F));  // though the sum itself is 0
  EXPECT_TRUE(exact(DType::fp16, 9.0F));
}

TEST(SumsAreExact, AnFp32GradientCountsFurtherThanItsFactors) {
  const std::array tensors{matrix({{16}, {16}}), matrix({{16}, {16}}), matrix({{1}}), Matrix<float>{}, Matrix<float>{}};
  EXPECT_TRUE(sums_are_exact(backward(2), tensors));  // dw is 512, dx at most 16
}

}  // namespace
}  // namespace commfuse::validate
