// SPDX-License-Identifier: Apache-2.0
#include "model/fit/quantization_fit.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <variant>
#include <vector>

#include "model/fit/fit_calls.h"

namespace commfuse {

namespace {

constexpr std::array conversion_call_knobs{
    Knob<Quantization>{"call", &Quantization::call, 1.5, 0.1, 100.0},
    Knob<Quantization>{"start", &Quantization::start, 0.5, 0.01, 100.0},
    Knob<Quantization>{"hbm_efficiency", &Quantization::hbm_efficiency, 0.85, 0.05, 1.0},
    Knob<Quantization>{"cached_cost", &Quantization::cached_cost, 0.6, 0.01, 5.0},
    Knob<Quantization>{"block", &Quantization::block, 0.05, 0.001, 10.0},
    Knob<Quantization>{"resident_share", &Quantization::resident_share, 0.8, 0.1, 1.0}};
constexpr std::array scale_call_knobs{
    Knob<Quantization>{"scale_call", &Quantization::scale_call, 7.0, 0.1, 100.0},
    Knob<Quantization>{"scale_join", &Quantization::scale_join, 1.0, 0.01, 100.0},
    Knob<Quantization>{"scale_efficiency", &Quantization::scale_efficiency, 0.6, 0.05, 1.0},
    Knob<Quantization>{"scale_cached_cost", &Quantization::scale_cached_cost, 0.5, 0.01, 5.0}};

bool has_rows_of(std::span<const MeasuredQuantization> rows, QuantizationPart part) {
  return std::ranges::any_of(rows, [&](const MeasuredQuantization& row) { return row.size.part == part; });
}

struct QuantizationKernelOfFit {
  using Size = QuantizationSize;
  using Parameters = Quantization;
  using Work = std::monostate;
  static constexpr std::size_t fewest_sizes = 60;

  static const Quantization* known(const Accelerator& accelerator, DType dtype) {
    return quantization_of(accelerator, dtype);
  }
  static Quantization& parameters(Accelerator& accelerator, DType) {
    return accelerator.quantization ? *accelerator.quantization : accelerator.quantization.emplace();
  }
  static const FitScope& scope(const Accelerator& accelerator, DType dtype) { return known(accelerator, dtype)->fit; }
  static std::vector<Knob<Quantization>> knobs(const Quantization*, std::span<const MeasuredQuantization> rows) {
    std::vector<Knob<Quantization>> knobs;
    if (has_rows_of(rows, QuantizationPart::conversion)) {
      knobs.insert(knobs.end(), conversion_call_knobs.begin(), conversion_call_knobs.end());
    }
    if (has_rows_of(rows, QuantizationPart::scale)) {
      knobs.insert(knobs.end(), scale_call_knobs.begin(), scale_call_knobs.end());
    }
    return knobs;
  }
  static std::vector<Knob<Quantization>> all_knobs() {
    std::vector<Knob<Quantization>> knobs(conversion_call_knobs.begin(), conversion_call_knobs.end());
    knobs.insert(knobs.end(), scale_call_knobs.begin(), scale_call_knobs.end());
    return knobs;
  }
  static Work work(const Size&) { return {}; }
  static Duration time(const Accelerator& accelerator, const Size& size, Work) {
    return quantization_time(accelerator, size);
  }
  static auto key(const Size& size) { return std::tuple(size.rows, size.width, size.part); }
  static std::string group(const std::string& machine, const Size& size) { return quantization_group(machine, size); }
};

}  // namespace

bool can_fit_quantization(const Accelerator& accelerator, std::span<const MeasuredQuantization> rows,
                          const std::string& machine) {
  const bool is_known = quantization_of(accelerator, DType::fp8) != nullptr;
  return (is_known ||
          (has_rows_of(rows, QuantizationPart::conversion) && has_rows_of(rows, QuantizationPart::scale))) &&
         can_fit_calls<QuantizationKernelOfFit>(accelerator, rows, machine);
}

QuantizationFit fit_quantization(const Accelerator& accelerator, std::span<const MeasuredQuantization> rows,
                                 const std::string& machine, const std::string& source) {
  return fit_calls<QuantizationKernelOfFit>(accelerator, rows, machine, source);
}

std::string quantization_yaml(const QuantizationFit& fit, DType dtype, int indent) {
  return calls_yaml<QuantizationKernelOfFit>(fit, dtype, indent);
}

}  // namespace commfuse
