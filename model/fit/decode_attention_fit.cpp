// SPDX-License-Identifier: Apache-2.0
#include "model/fit/decode_attention_fit.h"

#include <array>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "model/cost/decode_attention.h"
#include "model/fit/fit_calls.h"

namespace commfuse {

namespace {

using Decode = DecodeAttention;
constexpr std::array packed_decode_knobs{Knob<Decode>{"call", &Decode::call, 5.0, 0.2, 100.0},
                                         Knob<Decode>{"packed_start", &Decode::packed_start, 2.0, 0.01, 100.0},
                                         Knob<Decode>{"packed_block", &Decode::packed_block, 2.0, 0.01, 100.0},
                                         Knob<Decode>{"packed_head", &Decode::packed_head, 0.05, 0.0001, 10.0},
                                         Knob<Decode>{"packed_keys", &Decode::packed_keys, 2.0, 0.01, 100.0},
                                         Knob<Decode>{"hbm_efficiency", &Decode::hbm_efficiency, 0.9, 0.1, 1.0},
                                         Knob<Decode>{"memory_ramp", &Decode::memory_ramp, 5.0, 0.01, 100.0},
                                         Knob<Decode>{"most_parts", &Decode::most_parts, 32.0, 1.0, 1024.0},
                                         Knob<Decode>{"narrow_time", &Decode::narrow_time, 0.9, 0.2, 3.0}};
constexpr std::array unpacked_decode_knobs{Knob<Decode>{"unpacked_start", &Decode::unpacked_start, 3.0, 0.01, 100.0},
                                           Knob<Decode>{"unpacked_block", &Decode::unpacked_block, 1.5, 0.01, 100.0},
                                           Knob<Decode>{"unpacked_keys", &Decode::unpacked_keys, 4.0, 0.01, 100.0},
                                           Knob<Decode>{"vector_rate", &Decode::vector_rate, 6.0, 0.1, 1000.0}};

struct DecodeKernelOfFit {
  using Size = AttentionSize;
  using Parameters = Decode;
  using Work = std::monostate;
  static constexpr std::size_t fewest_sizes = 60;

  static const Decode* known(const Accelerator& accelerator, DType dtype) {
    return decode_attention_of(accelerator, dtype);
  }
  static Decode& parameters(Accelerator& accelerator, DType dtype) {
    std::optional<Decode>& map = dtype == DType::fp8 ? accelerator.decode_attention_fp8 : accelerator.decode_attention;
    return map ? *map : map.emplace();
  }
  static const FitScope& scope(const Accelerator& accelerator, DType dtype) { return known(accelerator, dtype)->fit; }
  static std::vector<Knob<Decode>> knobs(const Decode* known, std::span<const MeasuredAttention>) {
    const bool has_unpacked = known == nullptr || known->unpacked_block.value > Duration::zero();
    return has_unpacked ? all_knobs()
                        : std::vector<Knob<Decode>>(packed_decode_knobs.begin(), packed_decode_knobs.end());
  }
  static std::vector<Knob<Decode>> all_knobs() {
    std::vector<Knob<Decode>> knobs(packed_decode_knobs.begin(), packed_decode_knobs.end());
    knobs.insert(knobs.end(), unpacked_decode_knobs.begin(), unpacked_decode_knobs.end());
    return knobs;
  }
  static Work work(const Size&) { return {}; }
  static Duration time(const Accelerator& accelerator, const Size& size, Work) {
    return decode_attention_time(accelerator, size);
  }
  static auto key(const Size& size) {
    return std::tuple(size.batch, size.seq, size.heads, size.kv_heads, size.head_dim);
  }
  static std::string group(const std::string& machine, const Size& size) {
    return decode_attention_group(machine, size);
  }
};

}  // namespace

bool can_fit_decode_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                              const std::string& machine) {
  return can_fit_calls<DecodeKernelOfFit>(accelerator, rows, machine);
}

AttentionFit fit_decode_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                                  const std::string& machine, const std::string& source) {
  return fit_calls<DecodeKernelOfFit>(accelerator, rows, machine, source);
}

std::string decode_attention_yaml(const AttentionFit& fit, DType dtype, int indent) {
  return calls_yaml<DecodeKernelOfFit>(fit, dtype, indent);
}

}  // namespace commfuse
