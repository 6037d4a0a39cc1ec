// SPDX-License-Identifier: Apache-2.0
#include "model/workload/sites.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/model/llama_70b.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

using test::llama_70b;

std::string site_refusal(SiteName name, std::int64_t tokens, int ranks, KeyHeads key_heads = KeyHeads::split) {
  return test::refusal_of([&] { require_divisible(llama_70b, name, tokens, ranks, key_heads); });
}

TEST(SiteOf, QkvGathersHiddenAndMakesQueryKeyAndValueHeads) {
  const Site site = site_of(llama_70b, SiteName::qkv, 4096);
  EXPECT_EQ(site.kind, SiteKind::ag_gemm);
  EXPECT_EQ(site.tokens, 4096);
  EXPECT_EQ(site.contraction, 8192);
  EXPECT_EQ(site.columns, (64 + 8 + 8) * 128);
}

TEST(SiteOf, OutProjContractsTheHeadsAndScattersHidden) {
  const Site site = site_of(llama_70b, SiteName::out_proj, 4096);
  EXPECT_EQ(site.kind, SiteKind::gemm_rs);
  EXPECT_EQ(site.contraction, 64 * 128);
  EXPECT_EQ(site.columns, 8192);
}

TEST(SiteOf, GateUpHasTwiceTheColumnsWhenGated) {
  EXPECT_EQ(site_of(llama_70b, SiteName::gate_up, 1).columns, 2 * 28'672);
  Transformer not_gated = llama_70b;
  not_gated.gated_mlp = false;
  EXPECT_EQ(site_of(not_gated, SiteName::gate_up, 1).columns, 28'672);
}

TEST(SiteOf, DownContractsFfn) {
  const Site site = site_of(llama_70b, SiteName::down, 4096);
  EXPECT_EQ(site.kind, SiteKind::gemm_rs);
  EXPECT_EQ(site.contraction, 28'672);
  EXPECT_EQ(site.columns, 8192);
}

TEST(FlopsOf, CountsTwoFlopsPerMultiplyAdd) {
  // 2 x 1024 x 8192 x 8192 = 137,438,953,472
  EXPECT_EQ(flops_of(site_of(llama_70b, SiteName::out_proj, 1024)), Flops{137'438'953'472.0});
}

TEST(FlopsOf, CountsTwoFlopsPerWeightAndToken) {
  double flops = 0.0;
  std::int64_t weights = 0;
  for (const SiteName name : all_sites) {
    const Site site = site_of(llama_70b, name, 1);
    flops += flops_of(site).count;
    weights += site.contraction * site.columns;
  }
  // 8192 x 10240 + 8192 x 8192 + 8192 x 57344 + 28672 x 8192 = 855,638,016 weights per layer.
  EXPECT_EQ(weights, 855'638'016);
  EXPECT_EQ(flops, 2.0 * 855'638'016.0);
}

TEST(SiteNames, MatchTheNamesInResults) {
  EXPECT_EQ(name_of(SiteName::gate_up), "gate_up");
  EXPECT_EQ(name_of(SiteKind::ag_gemm), "ag_gemm");
  EXPECT_EQ(name_of(SiteKind::gemm_rs), "gemm_rs");
  EXPECT_EQ(name_of(SiteKind::ag_gemm_backward), "ag_gemm_backward");
  EXPECT_EQ(name_of(SiteKind::gemm_rs_backward), "gemm_rs_backward");
  EXPECT_EQ(name_of(SiteKind::weight_ag_gemm), "weight_ag_gemm");
  EXPECT_EQ(name_of(SiteKind::gradient_rs), "gradient_rs");
}

TEST(RequireDivisible, AcceptsAnEvenSplit) {
  for (const SiteName name : all_sites) {
    EXPECT_EQ(site_refusal(name, 1024, 8), "accepted");
    EXPECT_EQ(site_refusal(name, 1, 1), "accepted");
  }
  EXPECT_EQ(site_refusal(SiteName::down, 1022, 7), "accepted");
}

TEST(RequireDivisible, NamesRanksThatDivide) {
  EXPECT_EQ(
      site_refusal(SiteName::qkv, 1024, 3),
      "8 kv heads of llama-3.1-70b cannot be split over 3 ranks; choose ranks that divide heads (64) and kv heads (8): "
      "1, 2, 4, 8");
  EXPECT_EQ(site_refusal(SiteName::qkv, 1024, 3, KeyHeads::copied),
            "8 kv heads of llama-3.1-70b cannot be split over 3 ranks; choose ranks that divide heads (64) and either "
            "divide kv heads (8) or are a multiple of them: 1, 2, 4, 8, 16, 32, 64");
  EXPECT_EQ(site_refusal(SiteName::out_proj, 1024, 5),
            "64 heads of llama-3.1-70b cannot be split over 5 ranks; choose ranks that divide heads (64): 1, 2, 4, 8, "
            "16, 32, "
            "64");
  EXPECT_EQ(
      site_refusal(SiteName::down, 1024, 3),
      "28672 ffn columns of llama-3.1-70b cannot be split over 3 ranks; choose ranks that divide ffn (28672): 1, 2, 4, "
      "7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224, 256, 448, 512, 896, 1024");
}

TEST(RequireDivisible, NamesASingleHeadInTheSingular) {
  Transformer model = llama_70b;
  model.kv_heads = 1;
  EXPECT_EQ(test::refusal_of([&] { require_divisible(model, SiteName::qkv, 1024, 2, KeyHeads::split); }),
            "1 kv head of llama-3.1-70b cannot be split over 2 ranks; choose ranks that divide heads (64) and kv heads "
            "(1): 1");
}

TEST(RequireDivisible, GivesEachRankACopyOfAKvHeadWhereThatIsRequested) {
  EXPECT_EQ(site_refusal(SiteName::qkv, 1024, 16, KeyHeads::copied), "accepted");
  EXPECT_EQ(site_refusal(SiteName::qkv, 1024, 16).substr(0, 53),
            "8 kv heads of llama-3.1-70b cannot be split over 16 r");
  EXPECT_EQ(site_refusal(SiteName::qkv, 1024, 128, KeyHeads::copied).substr(0, 55),
            "64 heads of llama-3.1-70b cannot be split over 128 rank");
}

TEST(WithCopiedHeads, GivesARankOneHeadOfEachKind) {
  EXPECT_FALSE(with_copied_heads(llama_70b, 8).has_value());
  EXPECT_FALSE(with_copied_heads(llama_70b, 12).has_value()) << "some ranks would have two heads";
  EXPECT_EQ(with_copied_heads(llama_70b, 16)->qkv_columns(), (64 + 2 * 16) * 128);
  Transformer hybrid = llama_70b;
  hybrid.kv_heads = 16;
  hybrid.kinds = {{.attention = true, .kv_heads = 4}, {.state_space = true}};
  hybrid.state_space = StateSpace{.inner = 1024, .head_dim = 64, .state = 128, .groups = 2};
  const Transformer copied = with_copied_heads(hybrid, 16).value();
  EXPECT_EQ(copied.kv_heads, 16);
  EXPECT_EQ(copied.kinds[0].kv_heads, 16);
  EXPECT_EQ(copied.kinds[1].kv_heads, 0);
  EXPECT_EQ(copied.state_space->groups, 16);
  EXPECT_EQ(with_copied_heads(hybrid, 32)->state_space->groups, 2) << "16 heads of its state do not split over 32";
}

TEST(RequireDivisible, NamesTokensThatDivide) {
  EXPECT_EQ(
      site_refusal(SiteName::down, 1001, 8),
      "1001 tokens (batch x sequence) cannot be split over 8 ranks; choose a multiple of 8, such as 1000 or 1008");
  EXPECT_EQ(site_refusal(SiteName::down, 3, 8),
            "3 tokens (batch x sequence) cannot be split over 8 ranks; choose a multiple of 8, such as 8");
}

TEST(RequireDivisible, RefusesZeroAndNegativeAndHugeValues) {
  EXPECT_EQ(site_refusal(SiteName::qkv, 1024, 0), "ranks is 0; choose a whole number of at least 1");
  EXPECT_EQ(site_refusal(SiteName::qkv, 1024, -2), "ranks is -2; choose a whole number of at least 1");
  EXPECT_EQ(site_refusal(SiteName::qkv, 0, 8), "batch x sequence is 0 tokens; choose 1 to 1073741824");
  EXPECT_EQ(site_refusal(SiteName::qkv, 1'073'741'832, 8),
            "batch x sequence is 1073741832 tokens; choose 1 to 1073741824");
}

}  // namespace
}  // namespace commfuse
