// SPDX-License-Identifier: Apache-2.0
#include "model/fit/latent_decode_fit.h"

#include <array>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "model/fit/fit_calls.h"

namespace commfuse {

namespace {

using Latent = LatentDecodeKernel;
constexpr std::array latent_knobs{Knob<Latent>{"call", &Latent::call, 8.0, 0.2, 100.0},
                                  Knob<Latent>{"start", &Latent::start, 2.0, 0.01, 100.0},
                                  Knob<Latent>{"block", &Latent::block, 5.0, 0.01, 100.0},
                                  Knob<Latent>{"head", &Latent::head, 0.1, 0.0001, 10.0},
                                  Knob<Latent>{"keys", &Latent::keys, 4.0, 0.01, 100.0},
                                  Knob<Latent>{"hbm_efficiency", &Latent::hbm_efficiency, 0.85, 0.1, 1.0},
                                  Knob<Latent>{"memory_ramp", &Latent::memory_ramp, 5.0, 0.01, 100.0},
                                  Knob<Latent>{"most_parts", &Latent::most_parts, 8.0, 1.0, 1024.0},
                                  Knob<Latent>{"loop_efficiency", &Latent::loop_efficiency, 0.5, 0.05, 1.0},
                                  Knob<Latent>{"join_cost", &Latent::join_cost, 1.0, 0.01, 20.0}};
constexpr Knob<Latent> reread_knob{"reread", &Latent::reread, 0.5, 0.01, 2.0};

struct LatentKernelOfFit {
  using Size = LatentDecodeSize;
  using Parameters = Latent;
  using Work = std::monostate;
  static constexpr std::size_t fewest_sizes = 60;

  static const Latent* known(const Accelerator& accelerator, DType dtype) {
    return latent_decode_of(accelerator, dtype);
  }
  static Latent& parameters(Accelerator& accelerator, DType dtype) {
    std::optional<Latent>& map = dtype == DType::fp8 ? accelerator.latent_decode_fp8 : accelerator.latent_decode;
    return map ? *map : map.emplace();
  }
  static const FitScope& scope(const Accelerator& accelerator, DType dtype) { return known(accelerator, dtype)->fit; }
  static std::vector<Knob<Latent>> knobs(const Latent* known, std::span<const MeasuredLatentDecode>) {
    const bool rereads = known != nullptr && known->reread.value > 0.0;
    return rereads ? all_knobs() : std::vector<Knob<Latent>>(latent_knobs.begin(), latent_knobs.end());
  }
  static std::vector<Knob<Latent>> all_knobs() {
    std::vector<Knob<Latent>> knobs(latent_knobs.begin(), latent_knobs.end());
    knobs.push_back(reread_knob);
    return knobs;
  }
  static Work work(const Size&) { return {}; }
  static Duration time(const Accelerator& accelerator, const Size& size, Work) {
    return latent_decode_time(accelerator, size);
  }
  static auto key(const Size& size) {
    return std::tuple(size.batch, size.seq, size.heads, size.key_width, size.value_width);
  }
  static std::string group(const std::string& machine, const Size& size) { return latent_decode_group(machine, size); }
};

}  // namespace

bool can_fit_latent_decode(const Accelerator& accelerator, std::span<const MeasuredLatentDecode> rows,
                           const std::string& machine) {
  return can_fit_calls<LatentKernelOfFit>(accelerator, rows, machine);
}

LatentDecodeFit fit_latent_decode(const Accelerator& accelerator, std::span<const MeasuredLatentDecode> rows,
                                  const std::string& machine, const std::string& source) {
  return fit_calls<LatentKernelOfFit>(accelerator, rows, machine, source);
}

std::string latent_decode_yaml(const LatentDecodeFit& fit, DType dtype, int indent) {
  return calls_yaml<LatentKernelOfFit>(fit, dtype, indent);
}

}  // namespace commfuse
