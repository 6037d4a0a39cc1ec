// SPDX-License-Identifier: Apache-2.0
#include "model/program/sizes.h"

#include <gtest/gtest.h>

#include <array>

#include "model/program/builder.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

/// Returns a program with tokens in 4 blocks and hidden in one. x holds one block of tokens (bf16), sum holds all
/// blocks (fp32).
Program program_of_two_buffers() {
  ProgramBuilder builder("serial gate_up", Mesh{{{"tp", 4}}});
  const DimensionId tokens = builder.dimension("tokens", 4);
  const DimensionId hidden = builder.dimension("hidden", 1);
  builder.buffer("x", BufferRole::input, {tokens, 1}, {hidden, 1}, DType::bf16);
  builder.buffer("sum", BufferRole::scratch, {tokens, 4}, {hidden, 1}, DType::fp32);
  return std::move(builder).build();
}

std::string binding_refusal(std::int64_t tokens) {
  const Program program = program_of_two_buffers();
  const std::array quantities{Quantity{"hidden", 8}, Quantity{"tokens", tokens}};
  std::string refusal = test::refusal_of([&] { bind_sizes(program, quantities); });
  EXPECT_EQ(refusal_of(program, quantities), refusal);
  return refusal;
}

TEST(Sizes, ABlockIsAnEqualPartOfTheDimension) {
  const Sizes sizes = bind_sizes(program_of_two_buffers(), std::array{Quantity{"hidden", 8}, Quantity{"tokens", 12}});
  EXPECT_EQ(sizes.block, (std::vector<std::int64_t>{3, 8}));  // 12/4 tokens, 8/1 hidden
  EXPECT_EQ(refusal_of(program_of_two_buffers(), std::array{Quantity{"hidden", 8}, Quantity{"tokens", 12}}), "");
  EXPECT_EQ(sizes.elements({DimensionId{0}, 3}), 9);
  // An extent may have more blocks than its dimension: gate and up together have twice as many.
  EXPECT_EQ(sizes.elements({DimensionId{1}, 2}), 16);
}

TEST(Sizes, BuffersOccupyElementsTimesBytesPerElement) {
  const Program program = program_of_two_buffers();
  const Sizes sizes = bind_sizes(program, std::array{Quantity{"tokens", 12}, Quantity{"hidden", 8}});
  // x 3*8 of 2 bytes, sum 12*8 of 4 bytes: 48 + 384
  EXPECT_EQ(bytes_per_rank(program, sizes), Bytes{432});
}

TEST(Sizes, SuggestsASizeThatDivides) {
  EXPECT_EQ(
      binding_refusal(10),
      "10 tokens cannot be cut into 4 equal blocks, as serial gate_up requires; choose a multiple of 4, such as 8 or "
      "12");
  EXPECT_EQ(binding_refusal(3),
            "3 tokens cannot be cut into 4 equal blocks, as serial gate_up requires; choose 4 or a multiple of it");
  EXPECT_EQ(binding_refusal(0),
            "0 tokens cannot be cut into 4 equal blocks, as serial gate_up requires; choose 4 or a multiple of it");
  EXPECT_EQ(binding_refusal(-8),
            "-8 tokens cannot be cut into 4 equal blocks, as serial gate_up requires; choose 4 or a multiple of it");
}

TEST(SizesDeathTest, ADimensionWithoutASizeIsAProgrammingError) {
  EXPECT_DEATH(bind_sizes(program_of_two_buffers(), std::array{Quantity{"tokens", 12}}),
               "every dimension of a program is given a size");
}

}  // namespace
}  // namespace commfuse
