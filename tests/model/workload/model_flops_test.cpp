// SPDX-License-Identifier: Apache-2.0
// Compares FLOPs with closed forms, some of them from papers.
#include "model/workload/model_flops.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

const Transformer gpt_3{
    .layers = 96, .hidden = 12288, .ffn = 49152, .heads = 96, .kv_heads = 96, .head_dim = 128, .vocab = 51200};
constexpr Tokens batch{.sequences = 64, .seq = 2048};

// The formulas count in units of B s l h^2, with the ratios s / h and V / (l h): B sequences of s tokens, l layers of
// width h, and a vocabulary of V.
constexpr double bslh2 = 64.0 * 2048 * 96 * 12288 * 12288;
constexpr double s_over_h = 2048.0 / 12288;
constexpr double v_over_lh = 51200.0 / (96.0 * 12288);

TEST(ModelFlops, MatchEquation7OfKorthikantiForGpt) {
  const double expected = 72.0 * bslh2 * (1.0 + s_over_h / 6.0 + v_over_lh / 12.0);
  EXPECT_NEAR(training_flops(gpt_3, batch, AttentionCount::full).count / expected, 1.0, 1e-12);
}

TEST(ModelFlops, MatchEquation3OfNarayananWithFullRecomputation) {
  const double expected = 96.0 * bslh2 * (1.0 + s_over_h / 6.0 + v_over_lh / 16.0);
  EXPECT_NEAR(hardware_flops(gpt_3, batch, AttentionCount::full, Recompute::full).count / expected, 1.0, 1e-12);
}

TEST(ModelFlops, MatchEquation8OfKorthikantiWithSelectiveRecomputation) {
  const double expected = 72.0 * bslh2 * (1.0 + s_over_h * 4.0 / 18.0 + v_over_lh / 12.0);
  EXPECT_NEAR(hardware_flops(gpt_3, batch, AttentionCount::full, Recompute::selective).count / expected, 1.0, 1e-12);
}

TEST(ModelFlops, CountEverySecondGemmThatRunsAgain) {
  // Per layer, keys and output of attention; the first GEMM of a plain MLP is kept.
  const double again = 2.0 * 64 * 2048 * 96 * (2.0 * 12288 * 12288);
  const Flops without = training_flops(gpt_3, batch, AttentionCount::full);
  const auto hardware = [](const SelectiveRecompute& selective, bool sums_over_ranks) {
    return hardware_flops(gpt_3, batch, AttentionCount::full, Recompute::selective, selective, sums_over_ranks).count;
  };
  const SelectiveRecompute gemms{.attention_core = false, .every_second_gemm = true};
  EXPECT_EQ(hardware(gemms, false), without.count + again);
  EXPECT_EQ(hardware(gemms, true), without.count + again / 2.0);  // Ranks keep the sum of the output.
  const double scores = forward_flops(gpt_3, batch, AttentionCount::full).attention.count;
  EXPECT_EQ(hardware({.every_second_gemm = true}, false), without.count + again + scores);
}

TEST(ModelFlops, CountHalfOfTheScoresUnderACausalMask) {
  const ForwardFlops full = forward_flops(gpt_3, batch, AttentionCount::full);
  const ForwardFlops causal = forward_flops(gpt_3, batch, AttentionCount::causal);
  EXPECT_EQ(causal.attention.count * 2.0, full.attention.count);
  EXPECT_EQ(causal.layers, full.layers);
}

TEST(ModelFlops, CountActiveExpertsAndTheRouter) {
  Transformer model = gpt_3;
  model.experts = Experts{.count = 8, .active = 2, .ffn = 1000};
  const double experts = 2.0 * 12288 * 1000 * 2 + 12288 * 8;  // two experts of two GEMMs, and the router
  const double attention = 4.0 * 12288 * 12288;
  EXPECT_EQ(forward_flops(model, {1, 1}, AttentionCount::full).layers.count, 2.0 * 96 * (experts + attention));
}

}  // namespace
}  // namespace commfuse
