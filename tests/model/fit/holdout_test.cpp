// SPDX-License-Identifier: Apache-2.0
#include "model/fit/holdout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace commfuse {
namespace {

TEST(Holdout, HashesLikeThePublishedFnv1a) {
  // These are the test vectors of FNV's authors.
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8ULL);
}

TEST(Holdout, HoldsOutAFifthOfTheGroups) {
  int held_out = 0;
  constexpr int groups = 20000;
  for (std::int64_t i = 0; i < groups; ++i) {
    held_out += is_held_out(gemm_group("gemm", "h100", "bf16", {.n = 64 * (i / 100), .k = 64 * (i % 100)})) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(held_out) / groups, 0.2, 0.01);
}

TEST(Holdout, RowsOfAGroupStayTogether) {
  const std::vector<std::int64_t> rows{1, 2, 11, 3, 12, 4, 5, 6, 7, 8, 9, 21};
  const auto group_of = [](std::int64_t row) { return link_group("p2p", "a", "send_recv", row % 10); };
  const RowSplit<std::int64_t> split = split_by_group(std::span(rows), group_of);
  EXPECT_EQ(split.kept.size() + split.held_out.size(), rows.size());
  ASSERT_EQ(split.groups.size(), split.kept.size());
  for (const std::int64_t row : split.held_out) {
    EXPECT_TRUE(is_held_out(group_of(row))) << row;
  }
  for (std::size_t i = 0; i < split.kept.size(); ++i) {
    EXPECT_FALSE(is_held_out(group_of(split.kept[i]))) << split.kept[i];
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_EQ(split.groups[i] == split.groups[j], split.kept[i] % 10 == split.kept[j] % 10);
    }
  }
}

TEST(Holdout, AGroupIsKindMachineDtypeAndShapeButNotRowsOrRanks) {
  EXPECT_EQ(gemm_group("gemm", "H100 SXM", "bf16", {.n = 4096, .k = 14336}), "gemm|H100 SXM|bf16|4096|14336");
  EXPECT_EQ(link_group("collective", "h100", "all_gather", 1048576), "collective|h100|all_gather|1048576");
  EXPECT_EQ(attention_group("attention", "a100", {.heads = 32, .kv_heads = 8, .head_dim = 128}),
            "attention|a100|32|8|128");
}

TEST(Holdout, AGroupOfExpertsIsTheirLayerAndLoadsButNotTokens) {
  ExpertLayerSize size{
      .tokens = 64, .hidden = 2048, .ffn = 512, .active = 8, .experts = 256, .tp = 2, .ep = 4, .exponent = 1.01};
  EXPECT_EQ(expert_layer_group("H100-SXM5", size), "expert_layer|H100-SXM5|2048|512|8|256|2|4|power_law_1.01");
  size.exponent = 0.0;
  size.dtype = DType::fp8;
  EXPECT_EQ(expert_layer_group("H100-SXM5", size), "expert_layer|H100-SXM5|2048|512|8|256|2|4|balanced|fp8");
}

TEST(Holdout, AGroupOfQuantizationIsItsWidthInBothParts) {
  EXPECT_EQ(quantization_group("H100-SXM5", {.rows = 64, .width = 4096}), "quantize|H100-SXM5|4096");
  EXPECT_EQ(quantization_group("H100-SXM5", {.rows = 1, .width = 4096, .part = QuantizationPart::scale}),
            "quantize|H100-SXM5|4096");
}

}  // namespace
}  // namespace commfuse
