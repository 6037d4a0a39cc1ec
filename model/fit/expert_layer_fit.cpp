// SPDX-License-Identifier: Apache-2.0
#include "model/fit/expert_layer_fit.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "model/check.h"
#include "model/fit/few_rows.h"
#include "model/fit/holdout.h"
#include "model/fit/knobs.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::size_t fewest_expert_sizes = 60;

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

std::vector<Knob<Moe>> knobs_of_experts(std::span<const MeasuredExpertLayer> rows) {
  std::vector<Knob<Moe>> knobs(even_expert_knobs.begin(), even_expert_knobs.end());
  const auto uneven = std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.size.exponent != 0.0; });
  if (uneven > 0 && uneven < static_cast<std::ptrdiff_t>(rows.size())) {
    knobs.push_back(uneven_expert_knob);
  }
  return knobs;
}

std::optional<Moe>& experts_for(Accelerator& accelerator, DType dtype) {
  return dtype == DType::fp8 ? accelerator.experts_fp8 : accelerator.experts;
}

/// Rows with their loads, on which no parameter depends.
class LoadedRows {
 public:
  explicit LoadedRows(const std::vector<MeasuredExpertLayer>& rows) : rows_(rows) {
    loads_.reserve(rows.size());
    for (const MeasuredExpertLayer& row : rows) {
      loads_.push_back(expert_load(row.size));
    }
  }

  /// Returns ln(predicted / measured).
  [[nodiscard]] double log_ratio(const Accelerator& accelerator, std::size_t row) const {
    const Duration predicted = expert_layer_time(accelerator, rows_[row].size, loads_[row]);
    return math::log(to_seconds(predicted) / to_seconds(rows_[row].time));
  }

 private:
  const std::vector<MeasuredExpertLayer>& rows_;
  std::vector<ExpertLoad> loads_;
};

FitQuality experts_quality(const Accelerator& accelerator, const std::vector<MeasuredExpertLayer>& rows) {
  return fit_quality(rows, [&](const MeasuredExpertLayer& row) {
    return to_seconds(expert_layer_time(accelerator, row.size)) / to_seconds(row.time);
  });
}

auto experts_key(const MeasuredExpertLayer& row) {
  const ExpertLayerSize& size = row.size;
  return std::tuple(size.tokens, size.hidden, size.ffn, size.active, size.experts, size.tp, size.ep, size.gated,
                    size.exponent);
}

RowSplit<MeasuredExpertLayer> split_experts(std::span<const MeasuredExpertLayer> rows, const std::string& machine) {
  return split_by_group(rows, [&](const MeasuredExpertLayer& row) { return expert_layer_group(machine, row.size); });
}

bool has_enough_experts(const std::vector<MeasuredExpertLayer>& rows) {
  return count_sizes<MeasuredExpertLayer>(rows, experts_key) >= fewest_expert_sizes;
}

ExpertLayerFit fit_few_experts(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> calls,
                               const std::string& source) {
  const std::vector<MeasuredExpertLayer> rows = one_per_size(calls, experts_key);
  const LoadedRows loaded(rows);
  Accelerator tried = accelerator;
  std::optional<Moe>& parameters = experts_for(tried, rows.front().size.dtype);
  check(parameters.has_value(), "few rows have a prior");
  const std::vector<Knob<Moe>> knobs = knobs_of_experts(rows);
  PriorFit fit = fit_few<Moe>(knobs, *parameters,
                              {.count = rows.size(),
                               .log_ratio = [&](std::size_t i) { return loaded.log_ratio(tried, i); },
                               .residual = parameters->fit.residual,
                               .source = source});
  const FitQuality fitted = experts_quality(tried, rows);
  return {.accelerator = std::move(tried),
          .fitted_parameters = std::move(fit.parameters),
          .left = std::move(fit.left),
          .distance = fit.distance,
          .has_few = true,
          .medians = rows,
          .fitted = fitted,
          .held_out = {}};
}

}  // namespace

bool can_fit_expert_layer(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> rows,
                          const std::string& machine) {
  return !rows.empty() && accelerator.supports(rows.front().size.dtype) &&
         (expert_layer_of(accelerator, rows.front().size.dtype) != nullptr ||
          has_enough_experts(split_experts(rows, machine).kept));
}

ExpertLayerFit fit_expert_layer(const Accelerator& accelerator, std::span<const MeasuredExpertLayer> rows,
                                const std::string& machine, const std::string& source) {
  check(can_fit_expert_layer(accelerator, rows, machine), "the rows determine the parameters");
  const RowSplit<MeasuredExpertLayer> split = split_experts(rows, machine);
  if (!has_enough_experts(split.kept)) {
    return fit_few_experts(accelerator, rows, source);
  }
  const LoadedRows loaded(split.kept);
  Accelerator tried = accelerator;
  std::optional<Moe>& parameters = experts_for(tried, rows.front().size.dtype);
  const std::vector<Knob<Moe>> knobs = knobs_of_experts(split.kept);
  if (!parameters) {
    parameters.emplace();
  }
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<Moe>(knobs, values, *parameters);
    for (std::size_t i = 0; i < split.kept.size(); ++i) {
      out[i] = loaded.log_ratio(tried, i);
    }
  };
  ExpertLayerFit result;
  RobustFit fit =
      robust_fit(fit_parameters<Moe>(knobs), split.kept.size(), residuals,
                 {.max_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3, .groups = split.groups});
  set_fitted<Moe>(knobs, fit, source, *parameters);
  result.fitted_parameters = std::move(fit.parameters);
  result.fitted = experts_quality(tried, split.kept);
  result.held_out = experts_quality(tried, split.held_out);
  result.accelerator = std::move(tried);
  return result;
}

std::string expert_layer_yaml(const ExpertLayerFit& fit, DType dtype, int indent) {
  const ExpertLayer* const parameters = expert_layer_of(fit.accelerator, dtype);
  check(parameters != nullptr, "the fit has parameters for this dtype");
  std::vector<Knob<Moe>> knobs(even_expert_knobs.begin(), even_expert_knobs.end());
  knobs.push_back(uneven_expert_knob);
  return knobs_yaml<Moe>(knobs_in<Moe>(knobs, fit.fitted_parameters), *parameters, indent);
}

}  // namespace commfuse
