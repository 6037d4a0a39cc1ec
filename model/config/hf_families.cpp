// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_families.h"

#include <algorithm>
#include <array>

namespace commfuse {

namespace {

using enum QkNorm;

/// Returns the defaults of plain decoders before 2023: two matrices per MLP, tied embeddings, LayerNorm, biases.
constexpr HfFamily early(std::string_view model_type) {
  return {.model_type = model_type, .gated_mlp = false, .tied = true, .norm = Norm::layer, .biases = true};
}

constexpr HfFamily with_four_hidden(HfFamily family) {
  family.ffn_is_four_hidden = true;
  return family;
}

constexpr HfFamily gemma3(std::string_view model_type) {
  return {.model_type = model_type,
          .tied = true,
          .qk_norm = head,
          .windows = HfWindows::but_every,
          .full_every = 6,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 256,
          .vocab = 262'208};
}

// Sources: configuration_*.py and modeling_*.py of huggingface/transformers, and for types that it lacks the code
// published with the weights.
constexpr std::array families{
    HfFamily{"llama"},
    HfFamily{"mistral"},
    HfFamily{"ministral"},
    HfFamily{"mistral3"},
    HfFamily{.model_type = "qwen2", .qkv_biases = true},
    HfFamily{.model_type = "qwen2_vl", .qkv_biases = true},
    HfFamily{.model_type = "qwen2_vl_text", .qkv_biases = true},
    HfFamily{.model_type = "qwen2_5_vl", .qkv_biases = true},
    HfFamily{.model_type = "qwen2_5_vl_text", .qkv_biases = true},
    HfFamily{.model_type = "qwen3", .qk_norm = head, .head_dim = 128},
    HfFamily{.model_type = "qwen3_vl_text", .qk_norm = head},
    HfFamily{.model_type = "qwen3_moe", .qk_norm = head},
    HfFamily{.model_type = "qwen3_vl_moe_text", .qk_norm = head},
    HfFamily{.model_type = "qwen3_omni_moe_text", .qk_norm = head},
    HfFamily{.model_type = "qwen2_moe", .qkv_biases = true, .shared_gate = true},
    HfFamily{
        .model_type = "qwen3_next", .qk_norm = head, .gated_attention = true, .shared_gate = true, .head_dim = 256},
    HfFamily{.model_type = "qwen3_5_text", .qk_norm = head, .gated_attention = true},
    HfFamily{.model_type = "qwen3_5", .qk_norm = head, .gated_attention = true},
    HfFamily{.model_type = "qwen3_5_moe_text", .qk_norm = head, .gated_attention = true, .shared_gate = true},
    HfFamily{.model_type = "qwen3_5_moe", .qk_norm = head, .gated_attention = true, .shared_gate = true},
    HfFamily{"mimo"},
    HfFamily{.model_type = "mimo_v2_flash", .router_bias = true},
    HfFamily{.model_type = "gemma", .tied = true, .head_dim = 256},
    HfFamily{.model_type = "gemma2", .tied = true, .windows = HfWindows::alternate, .head_dim = 256},
    gemma3("gemma3"),
    gemma3("gemma3_text"),
    HfFamily{
        .model_type = "gemma4_text", .tied = true, .qk_norm = head, .windows = HfWindows::but_every, .full_every = 6},
    HfFamily{"phi3"},
    HfFamily{.model_type = "phimoe", .norm = Norm::layer},
    HfFamily{.model_type = "cohere", .tied = true, .norm = Norm::layer},
    HfFamily{
        .model_type = "cohere2", .tied = true, .norm = Norm::layer, .windows = HfWindows::but_every, .full_every = 4},
    HfFamily{"olmo"},
    HfFamily{.model_type = "olmo2", .qk_norm = whole},
    HfFamily{.model_type = "olmo3", .qk_norm = whole, .windows = HfWindows::but_every, .full_every = 4},
    HfFamily{.model_type = "olmoe", .qk_norm = whole},
    HfFamily{"granite"},
    HfFamily{"granitemoe"},
    HfFamily{"granitemoeshared"},
    HfFamily{"granitemoehybrid"},
    HfFamily{.model_type = "stablelm", .norm = Norm::layer},
    HfFamily{"internlm2"},
    HfFamily{"internlm3"},
    HfFamily{"baichuan"},
    HfFamily{"yi"},
    HfFamily{.model_type = "smollm3", .tied = true},
    HfFamily{"exaone"},
    HfFamily{.model_type = "exaone4", .qk_norm = head, .windows = HfWindows::but_every, .full_every = 4},
    HfFamily{"seed_oss"},
    HfFamily{"apertus", false},
    HfFamily{.model_type = "glm", .qkv_biases = true},
    HfFamily{.model_type = "glm4", .qkv_biases = true},
    HfFamily{.model_type = "chatglm", .qkv_biases = true},
    HfFamily{.model_type = "glm4_moe", .router_bias = true},
    HfFamily{.model_type = "glm4v_moe_text", .router_bias = true},
    HfFamily{.model_type = "glm_moe_dsa", .router_bias = true},
    HfFamily{.model_type = "glm4_moe_lite", .router_bias = true},
    HfFamily{"mixtral"},
    HfFamily{"deepseek"},
    HfFamily{"deepseek_v2"},
    HfFamily{"deepseek_v3"},
    HfFamily{"deepseek_v32"},
    HfFamily{"kimi_k2"},
    HfFamily{.model_type = "kimi_linear", .router_bias = true},
    HfFamily{"minicpm"},
    HfFamily{.model_type = "minicpm3", .tied = true},
    HfFamily{.model_type = "dots1", .qk_norm = head, .router_bias = true},
    HfFamily{.model_type = "ernie4_5", .tied = true},
    HfFamily{.model_type = "ernie4_5_moe", .tied = true},
    HfFamily{.model_type = "hunyuan_v1_dense", .tied = true, .qk_norm = head},
    HfFamily{.model_type = "hunyuan_v1_moe", .tied = true, .qk_norm = head},
    HfFamily{.model_type = "hunyuan", .tied = true, .qk_norm = head},
    HfFamily{.model_type = "minimax_m2", .qk_norm = whole},
    HfFamily{
        .model_type = "gpt_oss", .biases = true, .sinks = true, .router_bias = true, .windows = HfWindows::alternate},
    HfFamily{
        .model_type = "llama4_text", .implied_shared_expert = true, .windows = HfWindows::but_every, .full_every = 4},
    HfFamily{"nemotron-nas"},
    HfFamily{.model_type = "nemotron", .gated_mlp = false, .norm = Norm::layer},
    HfFamily{.model_type = "nemotron_h", .gated_mlp = false, .router_bias = true},
    HfFamily{"bamba"},
    HfFamily{"falcon_h1"},
    HfFamily{"grok-1"},
    HfFamily{.model_type = "arcee", .gated_mlp = false},
    with_four_hidden(HfFamily{.model_type = "gpt2",
                              .gated_mlp = false,
                              .tied = true,
                              .norm = Norm::layer,
                              .biases = true,
                              .learned_positions = true}),
    with_four_hidden(HfFamily{.model_type = "gpt_bigcode",
                              .gated_mlp = false,
                              .tied = true,
                              .norm = Norm::layer,
                              .biases = true,
                              .learned_positions = true,
                              .multi_query = true}),
    with_four_hidden(HfFamily{.model_type = "gptj", .gated_mlp = false, .norm = Norm::layer}),
    with_four_hidden(HfFamily{.model_type = "codegen", .gated_mlp = false, .norm = Norm::layer}),
    with_four_hidden(early("bloom")),
    with_four_hidden(
        HfFamily{.model_type = "falcon", .gated_mlp = false, .tied = true, .norm = Norm::layer, .multi_query = true}),
    HfFamily{.model_type = "opt",
             .gated_mlp = false,
             .tied = true,
             .norm = Norm::layer,
             .biases = true,
             .learned_positions = true},
    HfFamily{.model_type = "gpt_neox", .gated_mlp = false, .norm = Norm::layer, .biases = true},
    HfFamily{.model_type = "phi", .gated_mlp = false, .norm = Norm::layer, .biases = true},
    early("starcoder2"),
};

}  // namespace

std::optional<HfFamily> hf_family(std::string_view model_type) {
  const auto* const known = std::find_if(families.begin(), families.end(),
                                         [&](const HfFamily& family) { return family.model_type == model_type; });
  return known == families.end() ? std::nullopt : std::optional(*known);
}

}  // namespace commfuse
