// SPDX-License-Identifier: Apache-2.0
// Defaults of Hugging Face's architectures for fields that a config.json omits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/workload/transformer.h"

namespace commfuse {

/// Layers that have a window when the file gives a window but no list of layers.
enum class HfWindows : std::uint8_t {
  all,
  alternate,  ///< Every second layer, from the first (Gemma 2, gpt-oss).
  but_every   ///< All layers except every n-th, n from the file or full_every (Gemma 3, Cohere 2, Llama 4).
};

/// Flags state what a model of the family has unless its file states otherwise.
struct HfFamily {
  std::string_view model_type;
  bool gated_mlp = true;
  bool ffn_is_four_hidden = false;  ///< The default width of the MLP is four times `hidden`.
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
  bool implied_shared_expert = false;  ///< The family has a shared expert as wide as a routed one.
  HfWindows windows = HfWindows::all;
  std::int64_t full_every = 0;  ///< The n of HfWindows::but_every if the file states none.
  /// Defaults of huggingface/transformers for fields that a file omits. 0: the file must have the field, except that
  /// kv_heads then defaults to heads, and head_dim to hidden / heads.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
  bool multi_query = false;  ///< All query heads share one key-value head unless the file states otherwise.
};

/// Returns nullopt for an unknown type.
std::optional<HfFamily> hf_family(std::string_view model_type);

}  // namespace commfuse
