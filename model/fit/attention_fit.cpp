// SPDX-License-Identifier: Apache-2.0
#include "model/fit/attention_fit.h"

#include <array>
#include <tuple>
#include <variant>
#include <vector>

#include "model/fit/fit_calls.h"

namespace commfuse {

namespace {

using Attention = AttentionParameters;
constexpr std::array attention_knobs{Knob<Attention>{"overhead", &Attention::overhead, 12.0, 0.5, 100.0},
                                     Knob<Attention>{"loop_efficiency", &Attention::loop_efficiency, 0.7, 0.1, 1.0},
                                     Knob<Attention>{"exponentials", &Attention::exponentials, 6.0, 0.5, 1000.0},
                                     Knob<Attention>{"masked_width", &Attention::masked_width, 128.0, 32.0, 256.0},
                                     Knob<Attention>{"tile_overhead", &Attention::tile_overhead, 2.0, 0.01, 50.0},
                                     Knob<Attention>{"query_cost", &Attention::query_cost, 1.0, 0.1, 20.0},
                                     Knob<Attention>{"key_cost", &Attention::key_cost, 1.5, 0.01, 20.0},
                                     Knob<Attention>{"imbalance", &Attention::imbalance, 0.6, 0.01, 3.0},
                                     Knob<Attention>{"narrow_overhead", &Attention::narrow_overhead, 1.0, 0.3, 3.0},
                                     Knob<Attention>{"lone_tile", &Attention::lone_tile, 1.0, 0.1, 4.0}};
constexpr std::array packed_attention_knobs{Knob<Attention>{"split_cost", &Attention::split_cost, 1.4, 0.5, 4.0}};

/// Returns the knobs. Only kernels that pack heads (split_cost above 0) have a split_cost to fit.
std::vector<Knob<Attention>> knobs_of_attention(const Attention& parameters) {
  std::vector<Knob<Attention>> knobs(attention_knobs.begin(), attention_knobs.end());
  if (parameters.split_cost.value > 0.0) {
    knobs.insert(knobs.end(), packed_attention_knobs.begin(), packed_attention_knobs.end());
  }
  return knobs;
}

struct AttentionKernelOfFit {
  using Size = AttentionSize;
  using Parameters = Attention;
  using Work = std::monostate;
  static constexpr std::size_t fewest_sizes = 30;

  static const Attention* known(const Accelerator& accelerator, DType) { return &accelerator.attention; }
  static Attention& parameters(Accelerator& accelerator, DType) { return accelerator.attention; }
  static const FitScope& scope(const Accelerator& accelerator, DType) { return accelerator.attention_fit; }
  static std::vector<Knob<Attention>> knobs(const Attention* known, std::span<const MeasuredAttention>) {
    return knobs_of_attention(*known);
  }
  static std::vector<Knob<Attention>> all_knobs() {
    Attention with_split_keys;
    with_split_keys.split_cost.value = 1.0;
    return knobs_of_attention(with_split_keys);
  }
  static Work work(const Size&) { return {}; }
  static Duration time(const Accelerator& accelerator, const Size& size, Work) {
    return attention_time(accelerator, size, accelerator.sms);
  }
  static auto key(const Size& size) {
    return std::tuple(size.batch, size.seq, size.heads, size.kv_heads, size.head_dim, size.causal, size.dtype);
  }
  static std::string group(const std::string& machine, const Size& size) {
    return attention_group("attention", machine, size);
  }
};

}  // namespace

AttentionFit fit_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                           const std::string& machine, const std::string& source) {
  return fit_calls<AttentionKernelOfFit>(accelerator, rows, machine, source);
}

std::string attention_yaml(const AttentionFit& fit, int indent) {
  return calls_yaml<AttentionKernelOfFit>(fit, DType::bf16, indent);
}

}  // namespace commfuse
