// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/workload/layers.h"
#include "model/workload/parameters.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view llama_config = R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_act": "silu",
  "hidden_size": 512,
  "intermediate_size": 1376,
  "num_hidden_layers": 6,
  "num_attention_heads": 8,
  "num_key_value_heads": 2,
  "rope_scaling": {"factor": 8.0},
  "torch_dtype": "bfloat16",
  "vocab_size": 32000
})";

class HfConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("commfuse-hf-" + std::to_string(getpid())) / "small-llama";
    fs::create_directories(folder_);
    file_ = folder_ / "config.json";
  }
  void TearDown() override { fs::remove_all(folder_.parent_path()); }

  [[nodiscard]] HfModel read(std::string_view text) const {
    std::ofstream(file_, std::ios::binary) << text;
    return read_hf_config(file_);
  }
  /// Returns llama with one string replaced by another.
  [[nodiscard]] static std::string llama_with(std::string_view from, std::string_view to) {
    std::string text(llama_config);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  /// Removes the path in front of every message.
  [[nodiscard]] std::string without_path(std::string message) const {
    const std::string path = file_.string() + ":";
    for (std::size_t at = message.find(path); at != std::string::npos; at = message.find(path)) {
      message.erase(at, path.size() + (message[at + path.size()] == ' ' ? 1 : 0));
    }
    return message;
  }
  [[nodiscard]] std::string refusal(std::string_view text) const {
    try {
      (void)read(text);
    } catch (const ConfigError& error) {
      return without_path(error.what());
    }
    return "accepted";
  }
  [[nodiscard]] std::string refusal(std::string_view from, std::string_view to) const {
    return refusal(llama_with(from, to));
  }

  fs::path folder_;
  fs::path file_;
};

TEST_F(HfConfigTest, ReadsALlama) {
  const HfModel read_model = read(llama_config);
  EXPECT_TRUE(read_model.doubts.empty());
  const Transformer& model = read_model.model;
  EXPECT_EQ(model.name, "small-llama");  // The folder names the model.
  EXPECT_EQ(model.layers, 6);
  EXPECT_EQ(model.hidden, 512);
  EXPECT_EQ(model.ffn, 1376);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.kv_heads, 2);
  EXPECT_EQ(model.head_dim, 64);  // 512 / 8
  EXPECT_EQ(model.vocab, 32000);
  EXPECT_TRUE(model.gated_mlp);
}

TEST_F(HfConfigTest, LoadModelReadsAJsonPath) {
  std::ofstream(file_) << llama_config;
  EXPECT_EQ(load_model(file_.string()).hidden, 512);
  EXPECT_EQ(find_config(Catalogue::models, "tiny.json"), fs::path("tiny.json"));
}

TEST_F(HfConfigTest, AnUnknownTypeIsReadAndReportedOnceOnStderr) {
  std::ofstream(file_) << llama_with("\"llama\"", "\"llamoid\"");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(load_model(file_.string()).gated_mlp);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: " + file_.string() +
                ": unknown model_type 'llamoid'; treated as a decoder with a gated MLP, so check the shape\n");
}

TEST_F(HfConfigTest, AnUnusedKeyIsReportedWithoutControlCharacters) {
  std::ofstream(file_) << llama_with("\"vocab_size\"", "\"new\\u001b[31m\\nidea\": 1, \"vocab_size\"");
  ::testing::internal::CaptureStderr();
  load_model(file_.string());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: " + file_.string() +
                ": key new\\x1b[31m\\x0aidea is not used; check that it does not change the shape\n");
}

TEST_F(HfConfigTest, AFileWithAnotherNameNamesTheModel) {
  const fs::path file = folder_ / "mine.json";
  std::ofstream(file) << llama_config;
  EXPECT_EQ(read_hf_config(file).model.name, "mine");
}

TEST_F(HfConfigTest, AbsentOrNullKeyValueHeadsEqualHeads) {
  EXPECT_EQ(read(llama_with("\"num_key_value_heads\": 2,", "")).model.kv_heads, 8);
  EXPECT_EQ(read(llama_with("\"num_key_value_heads\": 2,", "\"num_key_value_heads\": null,")).model.kv_heads, 8);
}

TEST_F(HfConfigTest, AHeadMayBeWiderThanHiddenOverHeads) {
  const HfModel gemma = read(R"({"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 448,
    "intermediate_size": 1792, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 256, "vocab_size": 1000})");
  EXPECT_EQ(gemma.model.head_dim, 256);  // 448 / 4 is 112.
  EXPECT_TRUE(gemma.model.gated_mlp);
  EXPECT_EQ(
      read(llama_with("\"num_attention_heads\": 8", "\"head_dim\": null, \"num_attention_heads\": 8")).model.head_dim,
      64);
}

TEST_F(HfConfigTest, ReadsAQwen) {
  const HfModel qwen = read(R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
    "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "use_sliding_window": false,
    "layer_types": ["full_attention", "sliding_attention"], "num_experts": null, "vocab_size": 151936})");
  EXPECT_TRUE(qwen.doubts.empty());
  EXPECT_EQ(qwen.model.head_dim, 64);
  EXPECT_TRUE(qwen.model.gated_mlp);
}

constexpr std::string_view nemotron_h = R"({"model_type": "nemotron_h", "hidden_size": 512, "intermediate_size": 2048,
    "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1024,
    "hybrid_override_pattern": "M-M*-", "mamba_num_heads": 16, "mamba_head_dim": 64, "ssm_state_size": 128,
    "n_groups": 8, "conv_kernel": 4, "chunk_size": 128})";

TEST_F(HfConfigTest, ReadsAHybridWithALetterPerLayer) {
  const HfModel read_model = read(nemotron_h);
  EXPECT_TRUE(read_model.doubts.empty());
  const Transformer& model = read_model.model;
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_EQ(model.layers, 5);
  ASSERT_TRUE(model.state_space.has_value());
  EXPECT_EQ(model.kinds, kinds_of_letters("M-M*-", false));
  EXPECT_EQ(model.state_space->inner, 1024);
  EXPECT_EQ(model.state_space->groups, 8);
  EXPECT_EQ(model.state_space->chunk, 128);
  EXPECT_EQ(model.state_space->state_bits, 16);
}

TEST_F(HfConfigTest, NamesTheFormatsOfACheckpointThatAreNotPriced) {
  const HfModel model = read(R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 2048,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1024,
    "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {
      "group_0": {"weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8}},
      "group_1": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}, "input_activations": {"num_bits": 4}},
      "group_2": {"weights": {"num_bits": 8, "type": "float"}, "input_activations": null}}}})");
  EXPECT_EQ(model.model.weights.value().name, "nvfp4");
  ASSERT_EQ(model.notes.size(), 2U);
  EXPECT_EQ(model.notes[0], "weights in fp8 are counted as nvfp4, the narrowest format of this checkpoint");
}

TEST_F(HfConfigTest, ReadsTheWidthOfStates) {
  const auto bits = [&](std::string_view dtype) {
    std::string text(nemotron_h);
    text.insert(1, fmt::format(R"("mamba_ssm_cache_dtype": {}, )", dtype));
    return read(text).model.state_space->state_bits;
  };
  EXPECT_EQ(bits(R"("float32")"), 32);
  EXPECT_EQ(bits(R"("bfloat16")"), 16);
  EXPECT_EQ(bits(R"("auto")"), 16);
  EXPECT_THROW(bits(R"("int4")"), ConfigError);
}

TEST_F(HfConfigTest, ReadsAHybridWithAnMlpInEveryLayer) {
  const Transformer model =
      read(R"({"model_type": "bamba", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1024, "attn_layer_indices": [1],
    "mamba_n_heads": 16, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4})")
          .model;
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_EQ(model.layers, 3);
  EXPECT_EQ(model.kinds, kinds_of_letters("mam", false));
}

TEST_F(HfConfigTest, RefusesUnreadableHybrids) {
  const auto refusal_with = [&](std::string_view from, std::string_view to) {
    std::string text(nemotron_h);
    return refusal(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(refusal_with("M-M*-", "M-MX-"),
            "'hybrid_override_pattern' has the unknown layer 'X' (known: M, * and -); choose another model");
  EXPECT_EQ(refusal_with("M-M*-", "M-M*"),
            "'hybrid_override_pattern' has 4 letters for 5 layers; correct num_hidden_layers");
  EXPECT_EQ(refusal_with("\"n_groups\": 8", "\"n_groups\": 5"),
            "16 heads do not split into 5 groups; correct n_groups");
  EXPECT_EQ(refusal_with("nemotron_h", "zamba2"),
            "'ssm_state_size': state-space layers of model_type 'zamba2' are not supported; choose another model");
}

TEST_F(HfConfigTest, ReadsTheNamesOfGpt2) {
  const HfModel gpt2 = read(R"({"model_type": "gpt2", "activation_function": "gelu_new", "n_embd": 768, "n_head": 12,
    "n_layer": 12, "n_inner": null, "n_positions": 1024, "vocab_size": 50257})");
  EXPECT_TRUE(gpt2.doubts.empty());
  EXPECT_EQ(gpt2.model.hidden, 768);
  EXPECT_EQ(gpt2.model.layers, 12);
  EXPECT_EQ(gpt2.model.ffn, 3072);  // 4 x 768
  EXPECT_EQ(gpt2.model.kv_heads, 12);
  EXPECT_FALSE(gpt2.model.gated_mlp);
}

TEST_F(HfConfigTest, ReadsTheNamesOfOptAndFalcon) {
  const HfModel opt = read(R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "vocab_size": 50272})");
  EXPECT_EQ(opt.model.ffn, 3072);
  EXPECT_FALSE(opt.model.gated_mlp);
  const std::string falcon = R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
    "num_attention_heads": 71, "multi_query": true, "vocab_size": 65024)";
  EXPECT_EQ(read(falcon + "}").model.kv_heads, 1);
  EXPECT_EQ(read(falcon + "}").model.ffn, 4 * 4544);
  const std::string silent = R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
    "num_attention_heads": 71, "vocab_size": 65024)";
  EXPECT_EQ(read(silent + "}").model.kv_heads, 1);
  EXPECT_EQ(read(silent + R"(, "multi_query": false})").model.kv_heads, 71);
  EXPECT_EQ(read(R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_kv_heads": 8,
    "num_attention_heads": 128, "multi_query": true, "new_decoder_architecture": true, "vocab_size": 65024})")
                .model.kv_heads,
            8);
}

TEST_F(HfConfigTest, AMultimodalModelHasItsDecoderInTextConfig) {
  const std::string text(llama_config);
  const HfModel read_model =
      read(R"({"model_type": "llava", "vision_config": {"hidden_size": 64}, "text_config": )" + text + "}");
  EXPECT_EQ(read_model.model.hidden, 512);
  EXPECT_TRUE(read_model.model.gated_mlp);
  EXPECT_EQ(
      refusal(R"({"model_type": "llava", "text_config": )" + llama_with("\"vocab_size\": 32000", "\"x\": 1") + "}"),
      "'text_config.vocab_size' is missing; add it, or give a config.json of a decoder");
}

TEST_F(HfConfigTest, ReportsWhatTheFileDoesNotState) {
  const auto doubt_of = [&](std::string_view text) {
    const HfModel read_model = read(text);
    EXPECT_EQ(read_model.doubts.size(), 1u);
    return without_path(read_model.doubts.empty() ? "" : read_model.doubts.front());
  };
  EXPECT_EQ(doubt_of(llama_with("\"llama\",\n  \"hidden_act\": \"silu\"", "\"newt\",\n  \"hidden_act\": \"relu2\"")),
            "unknown model_type 'newt'; treated as a decoder with an ungated MLP, so check the shape");
  EXPECT_EQ(doubt_of(llama_with("\"model_type\": \"llama\",", "")),
            "no model_type; treated as a decoder with a gated MLP, so check the shape");
}

TEST_F(HfConfigTest, LayersThatHaveNoPriceAreRefused) {
  EXPECT_EQ(refusal("\"hidden_act\"", "\"layer_types\": [\"full_attention\", \"conv\"], \"hidden_act\""),
            "'layer_types' has a layer of type 'conv', which is not supported; choose another model");
  EXPECT_EQ(refusal("\"hidden_act\"", "\"attn_type_list\": [1, 0, 1, 1, 1, 1], \"hidden_act\""),
            "'attn_type_list': lightning attention is not supported; choose another model");
}

/// Returns a model in the style of small published models: a hidden size of 1024 in 28 layers.
std::string small_config(std::string_view type, std::string_view more) {
  return fmt::format(R"({{"model_type": "{}", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936{}{}}})",
                     type, more.empty() ? "" : ", ", more);
}

std::vector<std::int64_t> windows_of(const Transformer& model) {
  std::vector<std::int64_t> windows;
  for (const LayerKind& kind : model.kinds) {
    windows.push_back(kind.window);
  }
  return windows;
}

TEST_F(HfConfigTest, TiedEmbeddingsCountOnce) {
  const std::int64_t table = std::int64_t{151936} * 1024;
  const auto parameters = [&](std::string_view more) {
    return parameters_of(read(small_config("llama", more)).model).total();
  };
  EXPECT_EQ(parameters("") - parameters(R"("tie_word_embeddings": true)"), table);
  EXPECT_TRUE(read(small_config("gemma2", "")).model.tied_embeddings);  // The family's default
  EXPECT_EQ(parameters_of(read(small_config("qwen3", R"("tie_word_embeddings": true)")).model).total(), 596'049'920);
}

TEST_F(HfConfigTest, WindowsApplyToTheLayersThatHaveThem) {
  EXPECT_TRUE(read(small_config("mistral", R"("sliding_window": null)")).model.kinds.empty());
  EXPECT_EQ(windows_of(read(small_config("mistral", R"("sliding_window": 1024)")).model),
            std::vector<std::int64_t>(28, 1024));
  EXPECT_TRUE(
      read(small_config("qwen2", R"("sliding_window": 1024, "use_sliding_window": false)")).model.kinds.empty());
  const Transformer qwen =
      read(small_config("qwen2", R"("sliding_window": 1024, "use_sliding_window": true, "max_window_layers": 26)"))
          .model;
  EXPECT_EQ(windows_of(qwen)[25], 0);
  EXPECT_EQ(windows_of(qwen)[26], 1024);
  const std::vector<std::int64_t> gemma2 = windows_of(read(small_config("gemma2", R"("sliding_window": 4096)")).model);
  EXPECT_EQ(gemma2[0], 4096);
  EXPECT_EQ(gemma2[1], 0);
  const std::vector<std::int64_t> gemma3 =
      windows_of(read(small_config("gemma3_text", R"("sliding_window": 512, "sliding_window_pattern": 4)")).model);
  EXPECT_EQ((std::vector(gemma3.begin(), gemma3.begin() + 5)), (std::vector<std::int64_t>{512, 512, 512, 0, 512}));
  const std::vector<std::int64_t> exaone =
      windows_of(read(small_config("exaone4", R"("sliding_window": 512, "sliding_window_pattern": "LLG")")).model);
  EXPECT_EQ((std::vector(exaone.begin(), exaone.begin() + 5)), (std::vector<std::int64_t>{512, 512, 0, 512, 512}));
  const Transformer chunked = read(small_config("llama4_text", R"("attention_chunk_size": 8192)")).model;
  EXPECT_TRUE(chunked.kinds[0].chunked);
  EXPECT_EQ(windows_of(chunked)[2], 8192);
  EXPECT_EQ(windows_of(chunked)[3], 0);
}

TEST_F(HfConfigTest, TheListOfLayersOverridesTheFamily) {
  const Transformer model = read(llama_with("\"hidden_act\"", R"("layer_types": ["full_attention", "sliding_attention",
    "full_attention", "full_attention", "full_attention", "full_attention"], "sliding_window": 64, "hidden_act")"))
                                .model;
  EXPECT_EQ(windows_of(model), (std::vector<std::int64_t>{0, 64, 0, 0, 0, 0}));
}

TEST_F(HfConfigTest, EverySecondLayerHasExpertsAndAnImpliedSharedOne) {
  const Transformer model =
      read(
          R"({"model_type": "llama4_text", "hidden_size": 1024, "intermediate_size": 2048, "intermediate_size_mlp": 4096,
    "interleave_moe_layer_step": 2, "num_local_experts": 16, "num_experts_per_tok": 1, "num_hidden_layers": 8,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1024})")
          .model;
  const LayerCounts counts = layer_counts(model);
  EXPECT_EQ(counts.dense, 4);
  EXPECT_EQ(counts.mixture, 4);
  EXPECT_EQ(model.kinds[0].mlp, MlpKind::dense);
  EXPECT_EQ(model.kinds[1].mlp, MlpKind::mixture);
  EXPECT_EQ(model.experts->shared_ffn, 2048);
  EXPECT_EQ(model.ffn, 4096);
  // 8 layers of attention 4 x 1024^2; 4 MLPs of 3 x 1024 x 4096; 4 x 17 experts of 3 x 1024 x 2048; 4 routers; 2 tables
  // of the vocabulary. The total also has 17 norms.
  const std::int64_t weights =
      8 * 4 * 1024 * 1024 + 4 * 3 * 1024 * 4096 + 4 * 17 * 3 * 1024 * 2048 + 4 * 16 * 1024 + 2 * 1024 * 1024;
  EXPECT_EQ(parameters_of(model).total(), weights + 17 * 1024);
}

TEST_F(HfConfigTest, ModelsWithOnlyExpertsNeedNoDenseWidth) {
  const Transformer model =
      read(R"({"model_type": "qwen3_moe", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16,
    "num_key_value_heads": 8, "vocab_size": 1024, "num_experts": 16, "num_experts_per_tok": 2,
    "moe_intermediate_size": 512})")
          .model;
  EXPECT_EQ(model.ffn, 512);
  EXPECT_TRUE(model.kinds.empty());
}

TEST_F(HfConfigTest, AnMlpIsGatedUnlessFamilyOrActivationDiffers) {
  EXPECT_TRUE(read(small_config("tomorrow", "")).model.gated_mlp);
  EXPECT_FALSE(read(small_config("nemotron", "")).model.gated_mlp);
  EXPECT_FALSE(read(small_config("tomorrow", R"("hidden_act": "relu2")")).model.gated_mlp);
}

TEST_F(HfConfigTest, ReadsPythonsInfinityAndNan) {
  EXPECT_EQ(read(small_config("llama", R"("time_step_limit": [0.0, Infinity], "x": -Infinity, "y": NaN)")).model.layers,
            28);
  EXPECT_EQ(read(small_config("llama", R"("z": "Infinity and \"NaN\"")")).unused, (std::vector<std::string>{"z"}));
}

TEST_F(HfConfigTest, DeltaNetworksAlternateWithGatedAttention) {
  const Transformer model =
      read(R"({"model_type": "qwen3_next", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 8,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 1024,
    "full_attention_interval": 4, "linear_num_value_heads": 16, "linear_num_key_heads": 8, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4})")
          .model;
  EXPECT_EQ(model.kinds, kinds_of_letters("mmmammma", false));
  EXPECT_TRUE(model.gated_attention);
  EXPECT_EQ(model.qkv_columns(), (2 * 8 + 2 * 2) * 256);
  EXPECT_EQ(model.state_space->recurrence, Recurrence::gated_delta);
  EXPECT_EQ(model.state_space->projected(), 2 * 8 * 128 + 2 * 16 * 128 + 2 * 16);
}

TEST_F(HfConfigTest, ReadsLayersOfAnArchitectureSearch) {
  const Transformer model = read(R"({"model_type": "nemotron-nas", "hidden_size": 512, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": null, "intermediate_size": null, "vocab_size": 1000,
    "block_configs": [{"attention": {"n_heads_in_group": 4, "no_op": false}, "ffn": {"ffn_mult": 4.0}},
                      {"attention": {"no_op": true}, "ffn": {"ffn_mult": 4.0}},
                      {"attention": {"n_heads_in_group": 8, "no_op": false}, "ffn": {"ffn_mult": 1.0}}]})")
                                .model;
  EXPECT_EQ(model.ffn, 1536);  // 4 x 512 x 2 / 3 is 1365, rounded up to a multiple of 256
  EXPECT_EQ(model.kinds[1], LayerKind{.mlp = MlpKind::dense});
  EXPECT_EQ(model.kinds[2].ffn, 512);
  EXPECT_EQ(model.kv_heads, 1);
  EXPECT_EQ(model.kinds[0].kv_heads, 2);
}

TEST_F(HfConfigTest, LayersWithAWindowMayHaveTheirOwnHeads) {
  const Transformer model = read(small_config("mimo_v2_flash", R"("v_head_dim": 64, "sliding_window": 128,
    "hybrid_layer_pattern": [0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1],
    "swa_num_key_value_heads": 16, "swa_head_dim": 128)"))
                                .model;
  EXPECT_EQ(model.kinds[0], (LayerKind{.attention = true, .mlp = MlpKind::dense}));
  EXPECT_EQ(model.kinds[1], (LayerKind{.attention = true, .mlp = MlpKind::dense, .window = 128, .kv_heads = 16}));
  EXPECT_EQ(model.attended_columns(), 16 * 64);
  EXPECT_EQ(model.qkv_columns(), 16 * 128 + 8 * (128 + 64));
}

TEST_F(HfConfigTest, AnIndexerAndValuesWiderThanKeysAreRead) {
  const Transformer model =
      read(R"({"model_type": "glm_moe_dsa", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 4,
    "num_attention_heads": 8, "head_dim": 64, "qk_head_dim": 256, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
    "v_head_dim": 256, "q_lora_rank": null, "kv_lora_rank": 512, "index_topk": 2048, "index_n_heads": 32,
    "index_head_dim": 128, "vocab_size": 1000})")
          .model;
  EXPECT_EQ(model.head_dim, 192);
  EXPECT_EQ(model.value_dim(), 256);
  EXPECT_EQ(model.latent->query_rank, 0);
  EXPECT_EQ(model.latent->indexer->keys, 2048);
}

TEST_F(HfConfigTest, UnquantizedPartsAreSharesOfTheLayersThatHaveThem) {
  const auto weights = [&](const std::string& modules) {
    return *read(small_config("qwen3_moe", R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 768,
      "decoder_sparse_step": 2, "quantization_config": {"quant_method": "fp8", "modules_to_not_convert": [)" +
                                               modules + "]}"))
                .model.weights;
  };
  const WeightFormat all_quantized =
      weights("\"lm_head\", \"re:.*mlp.gate$\", \"model.layers.1.linear_attn.in_proj_ba\"");
  EXPECT_EQ(all_quantized.attention, 1.0);
  EXPECT_EQ(all_quantized.mlp, 1.0);
  EXPECT_EQ(all_quantized.experts, 1.0);
  const WeightFormat format = weights(
      "\"model.layers.1.mixer.experts\", \"model.layers.28.mlp.experts\", \"model.layers.0.mlp.up_proj\", "
      "\"model.layers.3.self_attn.q_proj\", \"model.layers.28.self_attn.q_proj\"");
  EXPECT_EQ(format.experts, 1.0 - 1.0 / 14.0);  // every second layer has experts
  EXPECT_EQ(format.mlp, 1.0 - 1.0 / 14.0);
  EXPECT_EQ(format.attention, 1.0 - 1.0 / 28.0);  // The 29th layer belongs to a draft model.
}

// This file omits the same keys as the config.json of google/gemma-3-4b-it.
TEST_F(HfConfigTest, UsesTheDefaultsOfTheLibrary) {
  const Transformer model = read(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
    "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}})")
                                .model;
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_dim, 256);
  EXPECT_EQ(model.vocab, 262208);
  EXPECT_NEAR(static_cast<double>(parameters_of(model).total()), 3.88e9, 0.01e9);
  EXPECT_EQ(read(R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 151936})")
                .model.head_dim,
            128);
}

TEST_F(HfConfigTest, NotesFixedScalesOfInputsWhichAreNotPriced) {
  const std::string fixed =
      "scales of inputs in fp8 are fixed in this checkpoint; GEMMs in fp8 are priced with scales that are found at run "
      "time, so serving is faster than predicted";
  const auto notes = [&](const std::string& quantization) {
    const std::vector<std::string> all_notes =
        read(small_config("qwen3", R"("quantization_config": )" + quantization)).notes;
    return std::ranges::count(all_notes, fixed) == 1;
  };
  EXPECT_TRUE(notes(R"({"quant_method": "fp8", "activation_scheme": "static"})"));
  EXPECT_TRUE(notes(R"({"quant_method": "modelopt", "quant_algo": "FP8"})"));
  const std::string group = R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
    "weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8, "type": "float", "dynamic": )";
  EXPECT_TRUE(notes(group + "false}}}}"));
  EXPECT_FALSE(notes(group + "true}}}}"));
  EXPECT_FALSE(notes(R"({"quant_method": "fp8", "activation_scheme": "dynamic"})"));
}

TEST_F(HfConfigTest, NamesAnUnknownQuantizationByItsWords) {
  const auto note = [&](const std::string& quantization) {
    return read(small_config("qwen3", R"("quantization_config": )" + quantization)).notes.at(0);
  };
  EXPECT_EQ(note(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"})"),
            "unknown quantization 'modelopt MIXED_PRECISION'; weights are counted as 16 bits wide");
  EXPECT_EQ(note(R"({"quant_method": "sparse"})"),
            "unknown quantization 'sparse'; weights are counted as 16 bits wide");
}

TEST_F(HfConfigTest, GroupsHaveAtLeastOneWeight) {
  const auto bits = [&](const std::string& size) {
    return read(small_config("qwen3", R"("quantization_config": {"quant_method": "awq", "bits": 4, "group_size": )" +
                                          size + "}"))
        .model.weights.value()
        .bits;
  };
  EXPECT_EQ(bits("64"), 4.0 + 16.0 / 64.0 + 4.0 / 64.0);
  EXPECT_EQ(bits("-1"), 4.0);  // one group per channel
  EXPECT_EQ(bits("1e-300"), 4.0);
}

TEST_F(HfConfigTest, UnusedKeysAreNamed) {
  const HfModel read_model = read(
      small_config("qwen3", R"("rope_theta": 1e6, "new_idea": 7, "num_nextn_predict_layers": 1, "bos_token_id": 1)"));
  EXPECT_EQ(read_model.unused, (std::vector<std::string>{"new_idea"}));
  ASSERT_EQ(read_model.notes.size(), 1U);
  EXPECT_EQ(read_model.notes.front(),
            "1 layer that predicts further tokens is not modelled (num_nextn_predict_layers)");
  const HfModel multimodal = read(R"({"model_type": "qwen3_vl", "vision_config": {"depth": 27}, "image_token_id": 5,
    "text_config": )" + small_config("qwen3_vl_text", R"("other_idea": 1)") +
                                  "}");
  EXPECT_EQ(multimodal.unused, (std::vector<std::string>{"text_config.other_idea"}));
  ASSERT_EQ(multimodal.notes.size(), 1U);
  EXPECT_EQ(multimodal.notes.front(), "the vision tower is not modelled (vision_config)");
}

void expect_same_model(const Transformer& from_json, const Transformer& shipped) {
  EXPECT_EQ(from_json.layers, shipped.layers);
  EXPECT_EQ(from_json.hidden, shipped.hidden);
  EXPECT_EQ(from_json.heads, shipped.heads);
  EXPECT_EQ(from_json.kv_heads, shipped.kv_heads);
  EXPECT_EQ(from_json.head_dim, shipped.head_dim);
  EXPECT_EQ(from_json.vocab, shipped.vocab);
  EXPECT_EQ(from_json.gated_mlp, shipped.gated_mlp);
  ASSERT_TRUE(from_json.experts.has_value());
  EXPECT_EQ(from_json.experts->count, shipped.experts->count);
  EXPECT_EQ(from_json.experts->active, shipped.experts->active);
  EXPECT_EQ(from_json.experts->ffn, shipped.experts->ffn);
  EXPECT_EQ(from_json.experts->shared_ffn, shipped.experts->shared_ffn);
  EXPECT_EQ(from_json.kinds, shipped.kinds);
  ASSERT_EQ(from_json.latent.has_value(), shipped.latent.has_value());
  if (from_json.latent) {
    EXPECT_EQ(from_json.latent->query_rank, shipped.latent->query_rank);
    EXPECT_EQ(from_json.latent->key_value_rank, shipped.latent->key_value_rank);
    EXPECT_EQ(from_json.latent->position_dim, shipped.latent->position_dim);
    EXPECT_EQ(from_json.latent->value_dim, shipped.latent->value_dim);
  }
}

TEST_F(HfConfigTest, MixturesOfExpertsEqualTheShippedYamlModels) {
  const HfModel mixtral = read(R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "num_experts_per_tok": 2, "vocab_size": 32000})");
  expect_same_model(mixtral.model, load_model("mixtral-8x7b"));
  EXPECT_TRUE(mixtral.doubts.empty());
  expect_same_model(read(R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
    "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
    "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "vocab_size": 151936})")
                        .model,
                    load_model("qwen3-30b-a3b"));
  expect_same_model(read(R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3,
    "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "vocab_size": 129280})")
                        .model,
                    load_model("deepseek-v3"));
}

TEST_F(HfConfigTest, SharedExpertsMayBeOneWideExpert) {
  const std::string moe = "\"num_experts\": 60, \"num_experts_per_tok\": 4, \"moe_intermediate_size\": 1408, ";
  const HfModel qwen2 =
      read(llama_with("\"hidden_act\"", moe + "\"shared_expert_intermediate_size\": 5632, \"mlp_only_layers\": [0], "
                                              "\"hidden_act\""));
  EXPECT_EQ(qwen2.model.experts->shared_ffn, 5632);
  EXPECT_EQ(layer_counts(qwen2.model).dense, 1);
}

TEST_F(HfConfigTest, SomeLayersMayHaveExperts) {
  const std::string moe = "\"num_experts\": 8, \"num_experts_per_tok\": 2, ";
  const auto mixtures = [&](std::string_view more) {
    std::string letters;
    for (const LayerRun& run :
         layer_runs(read(llama_with("\"hidden_act\"", moe + std::string(more) + "\"hidden_act\"")).model)) {
      letters += std::string(static_cast<std::size_t>(run.count), run.kind.mlp == MlpKind::mixture ? 'E' : '-');
    }
    return letters;
  };
  EXPECT_EQ(mixtures(""), "EEEEEE");
  EXPECT_EQ(mixtures("\"decoder_sparse_step\": 2, "), "-E-E-E");
  EXPECT_EQ(mixtures("\"mlp_only_layers\": [3], "), "EEE-EE");
  EXPECT_EQ(mixtures("\"first_k_dense_replace\": 1, \"moe_layer_freq\": 2, "), "--E-E-");
  EXPECT_EQ(mixtures("\"moe_layer_freq\": [0, 1, 1, 0, 1, 1], "), "-EE-EE");
  EXPECT_EQ(mixtures("\"moe_layer_interval\": 3, "), "--E--E");
  EXPECT_EQ(mixtures("\"mlp_layer_types\": [\"dense\", \"sparse\", \"sparse\", \"sparse\", \"sparse\", \"dense\"], "),
            "-EEEE-");
  EXPECT_EQ(refusal("\"hidden_act\"", "\"num_experts\": 8, \"hidden_act\""),
            "'num_experts_per_tok' is missing; add it, or give a config.json of a decoder");
  EXPECT_EQ(refusal("\"hidden_act\"", "\"num_experts\": 2, \"num_experts_per_tok\": 4, \"hidden_act\""),
            "a token cannot go to 4 of 2 experts; correct num_experts_per_tok");
  EXPECT_EQ(refusal("\"hidden_act\"", moe + "\"first_k_dense_replace\": 6, \"hidden_act\""),
            "none of the 6 layers has experts; correct which layers are dense");
  EXPECT_EQ(refusal("\"hidden_act\"", "\"num_experts\": 1, \"hidden_act\""), "accepted");
}

TEST_F(HfConfigTest, AHugeNumberOfExpertsIsNotTakenForNone) {
  EXPECT_EQ(
      refusal("\"hidden_act\"", "\"num_experts\": 18446744073709551615, \"num_experts_per_tok\": 1, \"hidden_act\""),
      "'num_experts' is 18446744073709551615; choose 1 to 65536");
}

// In moe_layers_enum the config.json of Step-3 has a string; other files have a list.
TEST_F(HfConfigTest, LayersWithExpertsMayBeATextOrAList) {
  const auto with_layers = [](std::string_view layers) {
    return llama_with("\"hidden_act\"", fmt::format("\"moe_num_experts\": 8, \"moe_top_k\": 2, \"moe_layers_enum\": "
                                                    "{}, \"hidden_act\"",
                                                    layers));
  };
  const Transformer model = read(with_layers("\"2,3, 5\"")).model;
  EXPECT_EQ(layer_counts(model).dense, 3);
  EXPECT_EQ(model.kinds, read(with_layers("[2, 3, 5]")).model.kinds);
  EXPECT_EQ(refusal(with_layers("\"2,x\"")), "'moe_layers_enum' is '2,x'; write layers, as in [4, 5, 6]");
}

TEST_F(HfConfigTest, ALayersListOfKeyValueHeadsOverridesTheirNumber) {
  const std::string list = "\"num_key_value_heads_per_layer\": [4, 4, 4, 4, 1, ";
  const Transformer model = read(llama_with("\"hidden_act\"", list + "4], \"hidden_act\"")).model;
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.kinds[4].kv_heads, 1);
  EXPECT_EQ(refusal("\"hidden_act\"", list + "3], \"hidden_act\""),
            "8 heads cannot share 3 key-value heads evenly; correct 'num_key_value_heads_per_layer'");
}

TEST_F(HfConfigTest, AWrongListIsOneMistake) {
  const auto refusal_of_widths = [&](const std::string& widths) {
    return refusal("\"intermediate_size\": 1376", "\"intermediate_size\": " + widths);
  };
  EXPECT_EQ(refusal_of_widths("[1, 2]"), "'intermediate_size' has 2 entries for 6 layers; correct num_hidden_layers");
  EXPECT_EQ(refusal_of_widths("[1]"), "'intermediate_size' has 1 entry for 6 layers; correct num_hidden_layers");
  EXPECT_EQ(refusal_of_widths("[1, 2, 3, 4, 5, 0]"), "an item of 'intermediate_size' is 0; choose 1 to 1048576");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "vocab_size": 1000,
    "intermediate_size": [1, 2]})"),
            "'num_hidden_layers' is missing; add it, or give a config.json of a decoder");
}

TEST_F(HfConfigTest, EncodersWithDecodersAreRefused) {
  EXPECT_EQ(refusal("\"hidden_act\"", "\"is_encoder_decoder\": true, \"hidden_act\""),
            "'is_encoder_decoder' is true: only decoders are supported; choose a decoder-only model");
}

TEST_F(HfConfigTest, MissingAndWrongFieldsAreAllReportedTogether) {
  EXPECT_EQ(refusal(R"({"model_type": "llama"})"),
            "'num_hidden_layers' is missing; add it, or give a config.json of a decoder\n"
            "'hidden_size' is missing; add it, or give a config.json of a decoder\n"
            "'num_attention_heads' is missing; add it, or give a config.json of a decoder\n"
            "'vocab_size' is missing; add it, or give a config.json of a decoder\n"
            "'intermediate_size' is missing; add it, or give a config.json of a decoder");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": \"512\""),
            "'hidden_size' is \"512\"; write a whole number");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": 512.5"), "'hidden_size' is 512.5; write a whole number");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": [512]"), "'hidden_size' is a list; write a whole number");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": true"),
            "'hidden_size' is true or false; write a whole number");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": {}"), "'hidden_size' is an object; write a whole number");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": null"),
            "'hidden_size' is missing; add it, or give a config.json of a decoder");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": 0"), "'hidden_size' is 0; choose 1 to 1048576");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": -512"), "'hidden_size' is -512; choose 1 to 1048576");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": 18446744073709551615"),
            "'hidden_size' is 18446744073709551615; choose 1 to 1048576");
}

TEST_F(HfConfigTest, HeadsMustSplitEvenly) {
  EXPECT_EQ(refusal("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"),
            "8 heads cannot share 3 key-value heads evenly; correct num_key_value_heads");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": 500"),
            "hidden size 500 is not divisible by 8 heads; add head_dim");
}

TEST_F(HfConfigTest, BrokenJsonIsReportedWithItsPlace) {
  EXPECT_EQ(refusal("{\n  \"hidden_size\": 512,\n  \"x\" 1\n}"),
            "3:7: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal(""), "1:1: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal("{\n  \"hidden_size\": 512"), "2:21: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal("{} {}"), "1:4: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal("<html>"), "1:1: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal("{\"a\": 1e999}"), "a number is out of range; correct it, or fetch the file again");
  EXPECT_EQ(refusal("[1]"), "the top level is not an object; give a config.json of a model");
}

TEST_F(HfConfigTest, UntrustedFilesHaveLimits) {
  EXPECT_EQ(refusal("\"hidden_act\"", "\"hidden_size\": 4, \"hidden_act\""),
            "an object has the key 'hidden_size' twice; keep one of them");
  EXPECT_EQ(refusal("{\"factor\": 8.0}", "{\"hidden_size\": 8.0}"), "accepted");
  EXPECT_EQ(refusal("{\"factor\": 8.0}", "[{\"a\": 1, \"b\": 1}, {\"a\": 1}]"), "accepted");
  EXPECT_EQ(refusal("{\"factor\": 8.0}", "{\"a\": 1, \"b\": {\"a\": 2}, \"a\": 3}"),
            "an object has the key 'a' twice; keep one of them");
  const std::string opening(31, '[');
  const std::string closing(31, ']');
  EXPECT_EQ(refusal("{\"factor\": 8.0}", opening + closing), "accepted");
  EXPECT_EQ(refusal("{\"factor\": 8.0}", opening + "[" + closing + "]"),
            "more than 32 levels of nesting; give a config.json of a model");
  EXPECT_EQ(refusal(std::string(100'000, '[')), "more than 32 levels of nesting; give a config.json of a model");
  EXPECT_EQ(refusal(std::string((16 << 20) + 1, ' ')),
            "the file is larger than 16 MiB; give the config.json of a model");
  std::string many = "[{}";
  for (int i = 0; i < 100'000; ++i) {
    many += ",{}";
  }
  EXPECT_EQ(refusal("{\"factor\": 8.0}", many + "]"), "accepted") << "100,001 empty objects";
  file_ = folder_;
  EXPECT_EQ(refusal(""), "cannot be read (Is a directory); check the path");
}

}  // namespace
}  // namespace commfuse
