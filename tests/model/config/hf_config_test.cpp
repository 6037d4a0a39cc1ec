// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "model/config/catalogue.h"
#include "model/config_error.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view llama = R"({
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
  /// llama with one text replaced by another.
  [[nodiscard]] static std::string llama_with(std::string_view from, std::string_view to) {
    std::string text(llama);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  /// Messages without the path in front.
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

TEST_F(HfConfigTest, reads_a_llama) {
  const HfModel read_model = read(llama);
  EXPECT_TRUE(read_model.doubts.empty());
  const Transformer& model = read_model.model;
  EXPECT_EQ(model.name, "small-llama");  // The folder's.
  EXPECT_EQ(model.layers, 6);
  EXPECT_EQ(model.hidden, 512);
  EXPECT_EQ(model.ffn, 1376);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.kv_heads, 2);
  EXPECT_EQ(model.head_dim, 64);  // 512 / 8
  EXPECT_EQ(model.vocab, 32000);
  EXPECT_TRUE(model.gated_mlp);
}

TEST_F(HfConfigTest, is_what_load_model_reads_for_a_json_path) {
  std::ofstream(file_) << llama;
  EXPECT_EQ(load_model(file_.string()).hidden, 512);
  EXPECT_EQ(find_config(Catalogue::models, "tiny.json"), fs::path("tiny.json"));
}

TEST_F(HfConfigTest, an_unknown_type_is_read_and_said_once_on_stderr) {
  std::ofstream(file_) << llama_with("\"llama\"", "\"llamoid\"");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(load_model(file_.string()).gated_mlp);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: " + file_.string() +
                ": unknown model_type 'llamoid'; taken for a decoder with a gated MLP, so check the shape\n");
}

TEST_F(HfConfigTest, another_file_name_names_the_model) {
  const fs::path file = folder_ / "mine.json";
  std::ofstream(file) << llama;
  EXPECT_EQ(read_hf_config(file).model.name, "mine");
}

TEST_F(HfConfigTest, key_value_heads_that_are_absent_or_null_are_as_many_as_heads) {
  EXPECT_EQ(read(llama_with("\"num_key_value_heads\": 2,", "")).model.kv_heads, 8);
  EXPECT_EQ(read(llama_with("\"num_key_value_heads\": 2,", "\"num_key_value_heads\": null,")).model.kv_heads, 8);
}

TEST_F(HfConfigTest, a_head_may_be_wider_than_hidden_over_heads) {
  const HfModel gemma = read(R"({"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 448,
    "intermediate_size": 1792, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 256, "vocab_size": 1000})");
  EXPECT_EQ(gemma.model.head_dim, 256);  // 448 / 4 is 112.
  EXPECT_TRUE(gemma.model.gated_mlp);
  EXPECT_EQ(
      read(llama_with("\"num_attention_heads\": 8", "\"head_dim\": null, \"num_attention_heads\": 8")).model.head_dim,
      64);
}

TEST_F(HfConfigTest, reads_a_qwen) {
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

TEST_F(HfConfigTest, reads_a_hybrid_with_a_letter_a_layer) {
  const HfModel read_model = read(nemotron_h);
  EXPECT_TRUE(read_model.doubts.empty());
  const Transformer& model = read_model.model;
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_EQ(model.layers, 5);
  ASSERT_TRUE(model.state_space.has_value());
  EXPECT_EQ(model.state_space->pattern, "M-M*-");
  EXPECT_EQ(model.state_space->inner, 1024);
  EXPECT_EQ(model.state_space->groups, 8);
  EXPECT_EQ(model.state_space->chunk, 128);
}

TEST_F(HfConfigTest, reads_a_hybrid_with_an_mlp_in_every_layer_as_two_of_ours) {
  const Transformer model =
      read(R"({"model_type": "bamba", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1024, "attn_layer_indices": [1],
    "mamba_n_heads": 16, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4})")
          .model;
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_EQ(model.layers, 6);
  EXPECT_EQ(model.state_space->pattern, "M-*-M-");
}

TEST_F(HfConfigTest, refuses_hybrids_that_it_cannot_read) {
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text(nemotron_h);
    return refusal(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(with("M-M*-", "M-MX-"),
            "'hybrid_override_pattern' has the letter 'X', and layers are of M*-; choose another model");
  EXPECT_EQ(with("M-M*-", "M-M*"), "'hybrid_override_pattern' has 4 letters for 5 layers; correct num_hidden_layers");
  EXPECT_EQ(with("\"n_groups\": 8", "\"n_groups\": 5"),
            "16 state-space heads do not split into 5 groups; correct n_groups");
  EXPECT_EQ(with("nemotron_h", "zamba2"),
            "'ssm_state_size' belongs to a state space of a kind that is not supported; choose a nemotron_h with a "
            "hybrid_override_pattern, or a bamba");
}

TEST_F(HfConfigTest, reads_the_names_of_gpt_2) {
  const HfModel gpt2 = read(R"({"model_type": "gpt2", "activation_function": "gelu_new", "n_embd": 768, "n_head": 12,
    "n_layer": 12, "n_inner": null, "n_positions": 1024, "vocab_size": 50257})");
  EXPECT_TRUE(gpt2.doubts.empty());
  EXPECT_EQ(gpt2.model.hidden, 768);
  EXPECT_EQ(gpt2.model.layers, 12);
  EXPECT_EQ(gpt2.model.ffn, 3072);  // 4 x 768
  EXPECT_EQ(gpt2.model.kv_heads, 12);
  EXPECT_FALSE(gpt2.model.gated_mlp);
}

TEST_F(HfConfigTest, reads_the_names_of_opt_and_falcon) {
  const HfModel opt = read(R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "vocab_size": 50272})");
  EXPECT_EQ(opt.model.ffn, 3072);
  EXPECT_FALSE(opt.model.gated_mlp);
  const std::string falcon = R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
    "num_attention_heads": 71, "multi_query": true, "vocab_size": 65024)";
  EXPECT_EQ(read(falcon + "}").model.kv_heads, 1);
  EXPECT_EQ(read(falcon + "}").model.ffn, 4 * 4544);
  EXPECT_EQ(read(R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_kv_heads": 8,
    "num_attention_heads": 128, "multi_query": true, "new_decoder_architecture": true, "vocab_size": 65024})")
                .model.kv_heads,
            8);
}

TEST_F(HfConfigTest, a_multimodal_model_keeps_its_text_inside) {
  const std::string text(llama);
  const HfModel read_model =
      read(R"({"model_type": "llava", "vision_config": {"hidden_size": 64}, "text_config": )" + text + "}");
  EXPECT_EQ(read_model.model.hidden, 512);
  EXPECT_TRUE(read_model.model.gated_mlp);
  EXPECT_EQ(
      refusal(R"({"model_type": "llava", "text_config": )" + llama_with("\"vocab_size\": 32000", "\"x\": 1") + "}"),
      "'text_config.vocab_size' is missing; add it, or give a config.json of a decoder");
}

TEST_F(HfConfigTest, what_is_left_open_is_said) {
  const auto doubt_of = [&](std::string_view text) {
    const HfModel read_model = read(text);
    EXPECT_EQ(read_model.doubts.size(), 1u);
    return without_path(read_model.doubts.empty() ? "" : read_model.doubts.front());
  };
  EXPECT_EQ(doubt_of(llama_with("\"llama\",\n  \"hidden_act\": \"silu\"", "\"newt\",\n  \"hidden_act\": \"gelu\"")),
            "unknown model_type 'newt'; taken for a decoder with an ungated MLP, so check the shape");
  EXPECT_EQ(doubt_of(llama_with("\"model_type\": \"llama\",", "")),
            "no model_type; taken for a decoder with a gated MLP, so check the shape");
  EXPECT_EQ(doubt_of(llama_with("\"hidden_act\"", "\"layer_types\": [\"full_attention\", \"mamba\"], \"hidden_act\"")),
            "layers of type 'mamba' are taken for full attention, so check the shape");
}

void expect_same(const Transformer& read, const Transformer& ours) {
  EXPECT_EQ(read.layers, ours.layers);
  EXPECT_EQ(read.hidden, ours.hidden);
  EXPECT_EQ(read.heads, ours.heads);
  EXPECT_EQ(read.kv_heads, ours.kv_heads);
  EXPECT_EQ(read.head_dim, ours.head_dim);
  EXPECT_EQ(read.vocab, ours.vocab);
  EXPECT_EQ(read.gated_mlp, ours.gated_mlp);
  ASSERT_TRUE(read.experts.has_value());
  EXPECT_EQ(read.experts->count, ours.experts->count);
  EXPECT_EQ(read.experts->active, ours.experts->active);
  EXPECT_EQ(read.experts->ffn, ours.experts->ffn);
  EXPECT_EQ(read.experts->shared, ours.experts->shared);
  EXPECT_EQ(read.experts->dense_layers, ours.experts->dense_layers);
  ASSERT_EQ(read.latent.has_value(), ours.latent.has_value());
  if (read.latent) {
    EXPECT_EQ(read.latent->query_rank, ours.latent->query_rank);
    EXPECT_EQ(read.latent->key_value_rank, ours.latent->key_value_rank);
    EXPECT_EQ(read.latent->position_dim, ours.latent->position_dim);
    EXPECT_EQ(read.latent->value_dim, ours.latent->value_dim);
  }
}

TEST_F(HfConfigTest, mixtures_of_experts_are_the_models_that_stand_here_as_yaml) {
  setenv("COMMFUSE_CONFIG_DIR", COMMFUSE_SOURCE_DIR "/configs", 1);
  const HfModel mixtral = read(R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "num_experts_per_tok": 2, "vocab_size": 32000})");
  expect_same(mixtral.model, load_model("mixtral-8x7b"));
  EXPECT_TRUE(mixtral.doubts.empty());
  expect_same(read(R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
    "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
    "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "vocab_size": 151936})")
                  .model,
              load_model("qwen3-30b-a3b"));
  expect_same(read(R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3,
    "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "vocab_size": 129280})")
                  .model,
              load_model("deepseek-v3"));
  unsetenv("COMMFUSE_CONFIG_DIR");
}

TEST_F(HfConfigTest, shared_experts_may_be_one_wide_one) {
  const std::string moe = "\"num_experts\": 60, \"num_experts_per_tok\": 4, \"moe_intermediate_size\": 1408, ";
  const HfModel qwen2 =
      read(llama_with("\"hidden_act\"", moe + "\"shared_expert_intermediate_size\": 5632, \"mlp_only_layers\": [0], "
                                              "\"hidden_act\""));
  EXPECT_EQ(qwen2.model.experts->shared, 4);
  EXPECT_EQ(qwen2.model.experts->dense_layers, 1);
  EXPECT_EQ(refusal("\"hidden_act\"", moe + "\"shared_expert_intermediate_size\": 5000, \"hidden_act\""),
            "'shared_expert_intermediate_size' is 5000, no multiple of an expert's 1408; write a YAML model for it");
}

TEST_F(HfConfigTest, mixtures_that_layers_here_cannot_be_are_refused) {
  const std::string moe = "\"num_experts\": 8, \"num_experts_per_tok\": 2, ";
  EXPECT_EQ(refusal("\"hidden_act\"", moe + "\"decoder_sparse_step\": 2, \"hidden_act\""),
            "'decoder_sparse_step' is not 1: dense layers between layers of experts are not supported; choose another "
            "model");
  EXPECT_EQ(refusal("\"hidden_act\"", moe + "\"mlp_only_layers\": [3], \"hidden_act\""),
            "'mlp_only_layers' are not the first ones; choose another model");
  EXPECT_EQ(refusal("\"hidden_act\"", "\"num_experts\": 8, \"hidden_act\""),
            "'num_experts_per_tok' is missing; add it, or give a config.json of a decoder");
  EXPECT_EQ(refusal("\"hidden_act\"", "\"num_experts\": 2, \"num_experts_per_tok\": 4, \"hidden_act\""),
            "a token cannot go to 4 of 2 experts; correct num_experts_per_tok");
  EXPECT_EQ(refusal("\"hidden_act\"", moe + "\"first_k_dense_replace\": 6, \"hidden_act\""),
            "6 dense layers leave none of 6 to the experts; correct the first of them");
  EXPECT_EQ(refusal("\"hidden_act\"", "\"num_experts\": 1, \"hidden_act\""), "accepted");
}

TEST_F(HfConfigTest, encoders_with_decoders_are_refused) {
  EXPECT_EQ(refusal("\"hidden_act\"", "\"is_encoder_decoder\": true, \"hidden_act\""),
            "'is_encoder_decoder' is true: only decoders are supported; choose a decoder-only model");
}

TEST_F(HfConfigTest, missing_and_wrong_fields_are_named_all_at_once) {
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

TEST_F(HfConfigTest, heads_must_share_evenly) {
  EXPECT_EQ(refusal("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"),
            "8 heads cannot share 3 key-value heads evenly; correct num_key_value_heads");
  EXPECT_EQ(refusal("\"hidden_size\": 512", "\"hidden_size\": 500"),
            "a hidden size of 500 does not split into 8 heads; add head_dim");
}

TEST_F(HfConfigTest, broken_json_is_placed) {
  EXPECT_EQ(refusal("{\n  \"hidden_size\": 512,\n  \"x\" 1\n}"),
            "3:7: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal(""), "1:1: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal("{\n  \"hidden_size\": 512"), "2:21: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal("{} {}"), "1:4: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal("<html>"), "1:1: not valid JSON; correct it there, or fetch the file again");
  EXPECT_EQ(refusal("{\"a\": 1e999}"), "a number is out of range; correct it, or fetch the file again");
  EXPECT_EQ(refusal("[1]"), "the top of the file is not an object; give a config.json of a model");
}

TEST_F(HfConfigTest, files_from_strangers_have_limits) {
  EXPECT_EQ(refusal("\"hidden_act\"", "\"hidden_size\": 4, \"hidden_act\""),
            "key 'hidden_size' is given twice; keep one of them");
  EXPECT_EQ(refusal("{\"factor\": 8.0}", "{\"hidden_size\": 8.0}"), "accepted");
  EXPECT_EQ(refusal("{\"factor\": 8.0}", "[{\"a\": 1, \"b\": 1}, {\"a\": 1}]"), "accepted");
  EXPECT_EQ(refusal("{\"factor\": 8.0}", "{\"a\": 1, \"b\": {\"a\": 2}, \"a\": 3}"),
            "key 'a' is given twice; keep one of them");
  const std::string deep(31, '[');
  const std::string undeep(31, ']');
  EXPECT_EQ(refusal("{\"factor\": 8.0}", deep + undeep), "accepted");
  EXPECT_EQ(refusal("{\"factor\": 8.0}", deep + "[" + undeep + "]"),
            "more than 32 levels of nesting; give a config.json of a model");
  EXPECT_EQ(refusal(std::string(100'000, '[')), "more than 32 levels of nesting; give a config.json of a model");
  EXPECT_EQ(refusal(std::string((1 << 20) + 1, ' ')),
            "the file is larger than 1 MiB; a config is a few KiB, so check the path");
  std::string many = "[{}";
  for (int i = 0; i < 100'000; ++i) {
    many += ",{}";
  }
  EXPECT_EQ(refusal("{\"factor\": 8.0}", many + "]"), "accepted") << "in a moment";
  file_ = folder_;
  EXPECT_EQ(refusal(""), "cannot be read (Is a directory); check the path");
}

}  // namespace
}  // namespace commfuse
