// SPDX-License-Identifier: Apache-2.0
// Tests which GEMMs of a layer run again, against the order in which torchtitan's models run them.
#include "model/workload/recomputation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model/workload/layers.h"
#include "tests/model/llama_70b.h"

namespace commfuse {
namespace {

constexpr SelectiveRecompute in_compiled_code{.attention_core = false, .every_second_gemm = true};
constexpr SelectiveRecompute in_eager_mode{.attention_core = false, .every_second_gemm_eager = true};

using GemmSizes = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Returns columns and contraction of the GEMMs that run again.
GemmSizes gemms_again(const Transformer& model, const SelectiveRecompute& selective, bool sums_over_ranks = false,
                      const LayerKind& kind = dense_layer) {
  GemmSizes weights;
  for (const RecomputedGemm& recomputed : recomputed_gemms(model, kind, selective, sums_over_ranks)) {
    if (recomputed.runs_again) {
      weights.emplace_back(recomputed.gemm.columns, recomputed.gemm.contraction);
    }
  }
  return weights;
}

std::ptrdiff_t kept_unread(const Transformer& model, const SelectiveRecompute& selective, bool sums_over_ranks) {
  return std::ranges::count(recomputed_gemms(model, dense_layer, selective, sums_over_ranks), true,
                            &RecomputedGemm::keeps_unread);
}

using test::llama_70b;

// torchtitan's Llama runs wq, wk, wv, wo, w1 (gate), w3 (up), w2 (down).
TEST(RecomputedGemms, OfLlamaAreThoseOfKeysOutputAndUp) {
  const GemmSizes keys_output_up{{1024, 8192}, {8192, 8192}, {28672, 8192}};
  EXPECT_EQ(gemms_again(llama_70b, in_compiled_code), keys_output_up);
  EXPECT_EQ(gemms_again(llama_70b, in_eager_mode), keys_output_up);
  EXPECT_EQ(gemms_again(llama_70b, {}), GemmSizes{});
}

TEST(RecomputedGemms, OutputsThatRanksSumRunAgainOnlyInEagerMode) {
  EXPECT_EQ(gemms_again(llama_70b, in_compiled_code, true), (GemmSizes{{1024, 8192}, {28672, 8192}}));
  EXPECT_EQ(gemms_again(llama_70b, in_eager_mode, true), gemms_again(llama_70b, in_eager_mode));
}

TEST(RecomputedGemms, TheLastOutputIsKeptOnlyInEagerMode) {
  for (const bool sums_over_ranks : {false, true}) {
    EXPECT_EQ(kept_unread(llama_70b, in_compiled_code, sums_over_ranks), 0);
    EXPECT_EQ(kept_unread(llama_70b, in_eager_mode, sums_over_ranks), 1);
  }
}

TEST(RecomputedGemms, ThePlainMlpOfGptKeepsItsFirstOutput) {
  Transformer gpt = llama_70b;
  gpt.gated_mlp = false;
  EXPECT_EQ(gemms_again(gpt, in_compiled_code), (GemmSizes{{1024, 8192}, {8192, 8192}}));
  EXPECT_EQ(gemms_again(gpt, in_eager_mode), (GemmSizes{{1024, 8192}, {8192, 8192}, {8192, 28672}}));
}

// wq_a, wq_b, wkv_a, wkv_b, wo, then gate, up, down.
TEST(RecomputedGemms, OfLatentAttentionAreTheWideOnes) {
  Transformer deepseek = llama_70b;
  deepseek.hidden = 7168;
  deepseek.ffn = 18432;
  deepseek.heads = 128;
  deepseek.latent = LatentAttention{.query_rank = 1536, .key_value_rank = 512, .position_dim = 64, .value_dim = 128};
  EXPECT_EQ(gemms_again(deepseek, in_compiled_code), (GemmSizes{{24576, 1536}, {32768, 512}, {18432, 7168}}));
  EXPECT_EQ(gemms_again(deepseek, in_eager_mode),
            (GemmSizes{{24576, 1536}, {32768, 512}, {18432, 7168}, {7168, 18432}}));
  EXPECT_EQ(kept_unread(deepseek, in_eager_mode, false),
            0);  // The attention's output is read: it is part of the residual.
  EXPECT_EQ(kept_unread(deepseek, in_eager_mode, true), 1);
}

TEST(RecomputedWeights, IncludeRouterAndRoutedExperts) {
  Transformer mixture = llama_70b;
  mixture.experts = Experts{.count = 64, .active = 4, .ffn = 1024, .shared_ffn = 2048};
  const std::int64_t dense = 1024 * 8192 + 8192 * 8192 + 2048 * 8192;  // keys, output, up of the shared experts
  const std::int64_t router = 8192 * 64;
  EXPECT_EQ(recomputed_weights(mixture, mixture_layer, in_compiled_code, false), dense + router + 4 * 2 * 8192 * 1024);
  EXPECT_EQ(recomputed_weights(mixture, mixture_layer, in_eager_mode, false), dense + router + 4 * 3 * 8192 * 1024);
  EXPECT_EQ(recomputed_weights(mixture, mixture_layer, {}, false), 0);
}

TEST(RecomputedGemms, AStateSpaceKeepsItsFirstOutput) {
  Transformer hybrid = llama_70b;
  hybrid.state_space = StateSpace{.inner = 16384, .head_dim = 64, .state = 128};
  const LayerKind mamba{.state_space = true};
  EXPECT_EQ(gemms_again(hybrid, in_compiled_code, false, mamba), GemmSizes{});
  EXPECT_EQ(gemms_again(hybrid, in_eager_mode, false, mamba), (GemmSizes{{8192, 16384}}));
}

}  // namespace
}  // namespace commfuse
