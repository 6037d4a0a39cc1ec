// SPDX-License-Identifier: Apache-2.0
// Compares parameters with published counts.
#include "model/workload/parameters.h"

#include <gtest/gtest.h>

#include <string>

#include "model/config/catalogue.h"

namespace commfuse {
namespace {

TEST(ParametersTest, MatchThePublishedWeightsOfLlama) {
  EXPECT_EQ(parameters_of(load_model("llama-3.1-8b")).total(), 8'030'261'248);
  EXPECT_EQ(parameters_of(load_model("llama-3.1-70b")).total(), 70'553'706'496);
  EXPECT_EQ(parameters_of(load_model("llama-3.1-405b")).total(), 405'853'388'800);
}

TEST(ParametersTest, MatchThePaperOfGpt3) {
  Transformer model = load_model("gpt-3-175b");
  model.vocab = 50257;                                                              // before padding
  EXPECT_NEAR(static_cast<double>(parameters_of(model).total()), 174.6e9, 0.05e9);  // Brown et al. 2020, table D.1
}

TEST(ParametersTest, MatchThePublishedWeightsOfGpt2Xl) {
  EXPECT_EQ(parameters_of(load_model("gpt-2-xl")).total(), 1'557'611'200);
}

TEST(ParametersTest, RanksThatDoNotDivideAVocabularyPadIt) {
  const Transformer gpt2 = load_model("gpt-2-xl");
  ASSERT_EQ(gpt2.vocab, 50'257);
  EXPECT_EQ(logits_columns(gpt2, 1), 50'257);
  EXPECT_EQ(logits_columns(gpt2, 2), 25'136);  // 25128.5, padded to a multiple of 8
  EXPECT_EQ(logits_columns(gpt2, 8), 6'288);
  EXPECT_EQ(logits_columns(load_model("llama-3.1-8b"), 8), 16'032);
}

TEST(ParametersTest, MatchThePublishedWeightsOfQwenWithBiases) {
  EXPECT_EQ(parameters_of(load_model("qwen2.5-7b")).total(), 7'615'616'512);
}

TEST(ParametersTest, FalconHasNormsWithAShift) {
  // Embedding and logits, 80 layers of GEMMs with 2,219,835,392 weights and of two norms, and the last norm.
  EXPECT_EQ(parameters_of(load_model("falcon-180b")).total(),
            2LL * 65024 * 14848 + 80 * (2'219'835'392 + 4 * 14848) + 2 * 14848);
}

TEST(ParametersTest, MatchThePublishedWeightsOfMixtral) {
  const ModelParameters count = parameters_of(load_model("mixtral-8x7b"));
  EXPECT_EQ(count.total(), 46'702'792'704);
  EXPECT_NEAR(static_cast<double>(count.active()), 12.9e9, 0.05e9);
}

TEST(ParametersTest, MatchThePublishedWeightsOfDeepseekV3) {
  const ModelParameters count = parameters_of(load_model("deepseek-v3"));
  EXPECT_EQ(count.total(), 671'026'419'200);
  EXPECT_NEAR(static_cast<double>(count.active()), 37e9, 0.6e9);  // with the embedding, 37.55
}

TEST(ParametersTest, MatchThePublishedWeightsOfQwen3) {
  EXPECT_EQ(parameters_of(load_model("qwen3-32b")).total(), 32'762'123'264);
  const ModelParameters count = parameters_of(load_model("qwen3-30b-a3b"));
  EXPECT_EQ(count.total(), 30'532'122'624);
  EXPECT_NEAR(static_cast<double>(count.active()), 3.3e9, 0.06e9);
}

TEST(ParametersTest, MatchThePublishedWeightsOfNemotronH) {
  // The safetensors index of nvidia/Nemotron-H-8B-Base-8K: in-projections of 18560 x 4096.
  EXPECT_EQ(load_model("nemotron-h-8b").state_space->projected(), 18'560);
  EXPECT_EQ(parameters_of(load_model("nemotron-h-8b")).total(), 8'100'852'736);
  // "Nemotron-H-56B": 54 x (projections 8192 x 37376 and 16384 x 8192) are 24 billion, 54 MLPs 29, 10 attentions 1.5.
  EXPECT_NEAR(static_cast<double>(parameters_of(load_model("nemotron-h-56b")).total()), 56.3e9, 1e9);
}

TEST(ParametersTest, AreBillionsIfMillionsWouldRoundToAThousand) {
  EXPECT_EQ(parameters_in_words(load_model("16384x30508")), "1B parameters");    // 999,686,144, and norms
  EXPECT_EQ(parameters_in_words(load_model("16384x30496")), "999M parameters");  // 999,292,928, and norms
}

TEST(StateSpaceParameters, MatchThePublishedWeightsOfMamba) {
  // state-spaces/mamba2-2.7b: 64 layers, d_model 2560, expand 2, d_state 128, headdim 64, one group, d_conv 4.
  const Transformer model{
      .hidden = 2560, .vocab = 50288, .state_space = StateSpace{.inner = 5120, .head_dim = 64, .state = 128}};
  // in 2560 x 10576, convolution 5376 x 5, three vectors of 80 heads, two norms, out 5120 x 2560
  EXPECT_EQ(state_space_parameters(model), 27'074'560 + 26'880 + 240 + 5120 + 2560 + 13'107'200);
  EXPECT_NEAR(static_cast<double>(64 * state_space_parameters(model) + model.vocab * model.hidden), 2.70e9, 0.01e9);
}

}  // namespace
}  // namespace commfuse
