// SPDX-License-Identifier: Apache-2.0
// How the architectures of Hugging Face differ in what their config.json leaves out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/workload/transformer.h"

namespace commfuse {

/// Which layers have a window where the file gives one and no list of layers.
enum class HfWindows : std::uint8_t {
  all,
  alternate,  ///< Every second, the first among them (Gemma 2, gpt-oss).
  but_every   ///< All but every so many-th, as the file says (Gemma 3, Cohere 2, Llama 4).
};

/// Flags: what a model of the family has unless its file says otherwise.
struct HfFamily {
  std::string_view model_type;
  bool gated_mlp = true;
  bool ffn_is_four_hidden = false;  ///< Where the file names no width of the MLP.
  bool tied = false;
  Norm norm = Norm::rms;
  bool biases = false;
  bool qkv_biases = false;
  bool learned_positions = false;
  QkNorm qk_norm = QkNorm::none;
  bool gated_attention = false;
  bool sinks = false;
  bool router_bias = false;
  bool shared_gate = false;
  bool implied_shared_expert = false;  ///< As wide as a routed one.
  HfWindows windows = HfWindows::all;
  std::int64_t full_every = 0;  ///< Of HfWindows::but_every.
  /// What huggingface/transformers has where a file says nothing; 0: the file has to, or a head is hidden over heads.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
};

/// Nothing for a type that is not known.
std::optional<HfFamily> hf_family(std::string_view model_type);

}  // namespace commfuse
