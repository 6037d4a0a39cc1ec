// SPDX-License-Identifier: Apache-2.0
#include "model/fit/holdout.h"

#include <fmt/format.h>

namespace commfuse {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash;
}

bool is_held_out(std::string_view key) { return fnv1a(key) % 5 == 0; }

std::string gemm_group(std::string_view kind, std::string_view machine, std::string_view dtype, const GemmSize& size) {
  return fmt::format("{}|{}|{}|{}|{}", kind, machine, dtype, size.n, size.k);
}

std::string link_group(std::string_view kind, std::string_view machine, std::string_view op, std::int64_t bytes) {
  return fmt::format("{}|{}|{}|{}", kind, machine, op, bytes);
}

std::string attention_group(std::string_view kind, std::string_view machine, const AttentionSize& size) {
  return fmt::format("{}|{}|{}|{}|{}", kind, machine, size.heads, size.kv_heads, size.head_dim);
}

std::string decode_attention_group(std::string_view machine, const AttentionSize& size) {
  return attention_group("decode_attention", machine, size) + (size.dtype == DType::fp8 ? "|fp8" : "");
}

std::string latent_decode_group(std::string_view machine, const LatentDecodeSize& size) {
  return fmt::format("latent_decode|{}|{}|{}{}", machine, size.heads, size.batch,
                     size.dtype == DType::fp8 ? "|fp8" : "");
}

std::string expert_layer_group(std::string_view machine, const ExpertLayerSize& size) {
  const std::string loads = size.exponent == 0.0 ? "balanced" : fmt::format("power_law_{}", size.exponent);
  return fmt::format("expert_layer|{}|{}|{}|{}|{}|{}|{}|{}{}", machine, size.hidden, size.ffn, size.active,
                     size.experts, size.tp, size.ep, loads, size.dtype == DType::fp8 ? "|fp8" : "");
}

std::string quantization_group(std::string_view machine, const QuantizationSize& size) {
  return fmt::format("quantize|{}|{}", machine, size.width);
}

std::string framework_kernel_group(std::string_view machine, std::string_view op, std::int64_t width) {
  return fmt::format("framework_kernel|{}|{}|{}", machine, op, width);
}

}  // namespace commfuse
