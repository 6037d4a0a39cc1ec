// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/workload/parameters.h"
#include "tests/own_folder.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

struct Published {
  const char* name;
  double billions;  ///< Parameters, as the model cards count them.
  bool is_tied;     ///< One vocabulary table serves input and output.
};

/// Returns billions of parameters of attention, MLP and vocabulary, without norms, biases and positions.
double billions_of(const Transformer& model, bool is_tied) {
  const auto attention = static_cast<double>(model.hidden * model.head_dim * 2 * (model.heads + model.kv_heads));
  const auto mlp = static_cast<double>((model.gated_mlp ? 3 : 2) * model.hidden * model.ffn);
  const auto vocabulary = static_cast<double>((is_tied ? 1 : 2) * model.vocab * model.hidden);
  return (static_cast<double>(model.layers) * (attention + mlp) + vocabulary) / 1e9;
}

TEST(LoadModel, ShapesAddUpToThePublishedNumberOfParameters) {
  for (const Published& model : {Published{"bloom-176b", 176.2, true}, {"falcon-180b", 179.5, false},
                                 {"gemma-2-27b", 27.2, true},          {"gpt-2-xl", 1.558, true},
                                 {"gpt-3-175b", 174.6, true},          {"llama-2-13b", 13.02, false},
                                 {"llama-2-70b", 68.98, false},        {"llama-2-7b", 6.738, false},
                                 {"llama-3.1-405b", 405.9, false},     {"llama-3.1-70b", 70.55, false},
                                 {"llama-3.1-8b", 8.03, false},        {"mistral-7b", 7.242, false},
                                 {"mistral-large-123b", 122.6, false}, {"opt-66b", 65.7, true},
                                 {"llama-3.3-70b", 70.55, false},      {"megatron-22b", 22.06, true},
                                 {"phi-3-medium", 13.96, false},       {"qwen2.5-72b", 72.7, false},
                                 {"qwen2.5-7b", 7.616, false},         {"qwen3-32b", 32.76, false}}) {
    EXPECT_NEAR(billions_of(load_model(model.name), model.is_tied) / model.billions, 1.0, 0.004) << model.name;
  }
}

TEST(LoadModel, ModelsWithDifferentLayersHaveTheReleasedParameters) {
  const auto total = [](const char* name) { return parameters_of(load_model(name)).total(); };
  EXPECT_EQ(total("gpt-oss-120b"), 116'829'156'672);
  EXPECT_EQ(total("llama-4-maverick"), 400'711'848'960);
  EXPECT_EQ(total("qwen3.5-122b-a10b"), 122'111'526'912);
  EXPECT_EQ(total("nemotron-3-super-120b"), 120'668'707'840);
  EXPECT_EQ(total("deepseek-v3.2"), 671'877'944'064);
}

TEST(LoadModel, ParameterCountsWhoseBytesOverflow64BitsAreRefused) {
  const OwnFolder folder;
  std::ofstream("huge.yaml") << "schema: commfuse.model/1\nname: huge\nlayers: 10000\nhidden: 1M\nffn: 1M\nheads: 1\n"
                                "kv_heads: 1\nhead_dim: 1\nvocab: 1\ngated_mlp: true\n"
                                "experts: {count: 65536, active: 65536, ffn: 1M, shared: 65536}\n";
  try {
    load_model("huge.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "huge.yaml: huge has 4.3e+21 parameters, more than 1e+17; check its sizes");
  }
}

/// Returns the message about a model with these layers and these lines.
std::string refusal_with(int layers, const std::string& lines) {
  std::ofstream("mine.yaml") << "schema: commfuse.model/1\nname: mine\nlayers: " + std::to_string(layers) +
                                    "\nhidden: 64\nffn: 64\nheads: 1\nkv_heads: 1\nhead_dim: 64\nvocab: 64\n"
                                    "gated_mlp: true\n" +
                                    lines;
  return test::refusal_of([] { load_model("mine.yaml"); });
}

TEST(LoadModel, ExpertsThatNoLayerHasAreRefused) {
  const OwnFolder folder;
  const std::string refusal =
      "mine.yaml:11:10: no layer has experts; change dense_layers, every or the pattern, or remove experts";
  EXPECT_EQ(refusal_with(8, "experts: {count: 8, active: 2, ffn: 64, every: 8}\n"), "accepted");
  EXPECT_EQ(refusal_with(4, "experts: {count: 8, active: 2, ffn: 64, every: 8}\n"), refusal);
  EXPECT_EQ(refusal_with(4, "experts: {count: 8, active: 2, ffn: 64, dense_layers: 3, every: 3}\n"), refusal);
  EXPECT_EQ(refusal_with(4, "experts: {count: 8, active: 2, ffn: 64, dense_layers: 4}\n"),
            "mine.yaml:11:55: 4 dense layers of 4 leave no layer with experts; choose fewer");
  EXPECT_EQ(refusal_with(1, "experts: {count: 8, active: 2, ffn: 64, dense_layers: 1}\n"),
            "mine.yaml:11:55: 1 dense layer of 1 leaves no layer with experts; choose fewer");
}

TEST(LoadModel, APatternOfAnotherLengthIsRefused) {
  const OwnFolder folder;
  const std::string space = ", inner: 64, head_dim: 64, state: 16}\n";
  EXPECT_EQ(refusal_with(2, "state_space: {pattern: M" + space),
            "mine.yaml:11:24: 1 letter for 2 layers; write one letter per layer");
  EXPECT_EQ(refusal_with(1, "state_space: {pattern: MM" + space),
            "mine.yaml:11:24: 2 letters for 1 layer; write one letter per layer");
}

}  // namespace
}  // namespace commfuse
