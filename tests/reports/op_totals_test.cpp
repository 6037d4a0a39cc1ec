// SPDX-License-Identifier: Apache-2.0
#include "reports/op_totals.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace commfuse::reports {
namespace {

TEST(OpTotals, CountsCausalAttentionUpToTheRangeOfTheNumber) {
  // Two sequences of 2^24 tokens, and 2^12 columns.
  const Sizes sizes{.block = {2, std::int64_t{1} << 25, 4096, 5120, 128}};
  AttentionShape attention{.queries = {.dimension = DimensionId{1}, .blocks = 1},
                           .keys = {.dimension = DimensionId{1}, .blocks = 1},
                           .columns = {.dimension = DimensionId{2}, .blocks = 1},
                           .qkv = {.dimension = DimensionId{3}, .blocks = 1},
                           .batch = DimensionId{0},
                           .head = DimensionId{4},
                           .causal = true};
  EXPECT_EQ(totals_of(sizes, attention).operations, std::int64_t{1} << 62);
  attention.causal = false;
  attention.queries.dimension = DimensionId{2};
  EXPECT_EQ(totals_of(sizes, attention).operations, std::int64_t{1} << 50);
}

// The GEMM has 2^71 operations and the attention 2^82.
TEST(OpTotals, StopsAtTheLargestNumber) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const Sizes sizes{.block = {1, std::int64_t{1} << 30, std::int64_t{1} << 20}};
  const Extent tokens{.dimension = DimensionId{1}, .blocks = 1};
  const Extent columns{.dimension = DimensionId{2}, .blocks = 1};
  EXPECT_EQ(totals_of(sizes, GemmShape{.m = tokens, .n = columns, .k = columns, .kernel_m = {}, .out = {}}).operations,
            largest);
  const AttentionShape attention{.queries = tokens,
                                 .keys = tokens,
                                 .columns = columns,
                                 .qkv = columns,
                                 .batch = DimensionId{0},
                                 .head = DimensionId{2}};
  EXPECT_EQ(totals_of(sizes, attention).operations, largest);
}

}  // namespace
}  // namespace commfuse::reports
