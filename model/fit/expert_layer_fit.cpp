// SPDX-License-Identifier: Apache-2.0
#include "model/fit/expert_layer_fit.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "model/fit/fit_calls.h"

namespace commfuse {

namespace {

using Moe = ExpertLayer;
// A call has at least five kernels, of 2 us each.
constexpr std::array even_expert_knobs{Knob<Moe>{"call", &Moe::call, 20.0, 10.0, 1000.0},
                                       Knob<Moe>{"expert", &Moe::expert, 0.05, 0.001, 10.0},
                                       Knob<Moe>{"choices", &Moe::choices, 0.3, 0.001, 1000.0},
                                       Knob<Moe>{"token_traffic", &Moe::token_traffic, 1.0, 0.01, 20.0},
                                       Knob<Moe>{"hbm_efficiency", &Moe::hbm_efficiency, 0.85, 0.1, 1.0},
                                       Knob<Moe>{"sm_loads", &Moe::sm_loads, 2.0, 0.05, 20.0},
                                       Knob<Moe>{"row_traffic", &Moe::row_traffic, 3.0, 0.01, 20.0},
                                       Knob<Moe>{"matrix_share", &Moe::matrix_share, 0.7, 0.05, 1.0},
                                       Knob<Moe>{"loop_start", &Moe::loop_start, 200.0, 1.0, 4000.0}};
constexpr Knob<Moe> uneven_expert_knob{"uneven_time", &Moe::uneven_time, 1.2, 0.5, 3.0};

struct ExpertKernelOfFit {
  using Size = ExpertLayerSize;
  using Parameters = Moe;
  using Work = ExpertLoad;
  static constexpr std::size_t fewest_sizes = 60;

  static const Moe* known(const Accelerator& accelerator, DType dtype) { return expert_layer_of(accelerator, dtype); }
  static Moe& parameters(Accelerator& accelerator, DType dtype) {
    std::optional<Moe>& map = dtype == DType::fp8 ? accelerator.experts_fp8 : accelerator.experts;
    return map ? *map : map.emplace();
  }
  static const FitScope& scope(const Accelerator& accelerator, DType dtype) { return known(accelerator, dtype)->fit; }
  static std::vector<Knob<Moe>> knobs(const Moe*, std::span<const MeasuredExpertLayer> rows) {
    const auto uneven = std::ranges::count_if(rows, [](const auto& row) { return row.size.exponent != 0.0; });
    const bool has_both = uneven > 0 && uneven < std::ssize(rows);
    return has_both ? all_knobs() : std::vector<Knob<Moe>>(even_expert_knobs.begin(), even_expert_knobs.end());
  }
  static std::vector<Knob<Moe>> all_knobs() {
    std::vector<Knob<Moe>> knobs(even_expert_knobs.begin(), even_expert_knobs.end());
    knobs.push_back(uneven_expert_knob);
    return knobs;
  }
  static Work work(const Size& size) { return expert_load(size); }
  static Duration time(const Accelerator& accelerator, const Size& size, const Work& load) {
    return expert_layer_time(accelerator, size, load);
  }
  static auto key(const Size& size) {
    return std::tuple(size.tokens, size.hidden, size.ffn, size.active, size.experts, size.tp, size.ep, size.gated,
                      size.exponent);
  }
  static std::string group(const std::string& machine, const Size& size) { return expert_layer_group(machine, size); }
};

}  // namespace

bool can_fit_expert_layer(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> rows,
                          const std::string& machine) {
  return !rows.empty() && accelerator.supports(rows.front().size.dtype) &&
         can_fit_calls<ExpertKernelOfFit>(accelerator, rows, machine);
}

ExpertLayerFit fit_expert_layer(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> rows,
                                const std::string& machine, const std::string& source) {
  return fit_calls<ExpertKernelOfFit>(accelerator, rows, machine, source);
}

std::string expert_layer_yaml(const ExpertLayerFit& fit, DType dtype, int indent) {
  return calls_yaml<ExpertKernelOfFit>(fit, dtype, indent);
}

}  // namespace commfuse
