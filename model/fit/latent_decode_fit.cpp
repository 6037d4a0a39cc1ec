// SPDX-License-Identifier: Apache-2.0
#include "model/fit/latent_decode_fit.h"

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

constexpr std::size_t fewest_latent_sizes = 60;

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

std::vector<Knob<Latent>> knobs_of_latent_decoding(const std::optional<Latent>& base) {
  std::vector<Knob<Latent>> knobs(latent_knobs.begin(), latent_knobs.end());
  if (base && base->reread.value > 0.0) {
    knobs.push_back(reread_knob);
  }
  return knobs;
}

std::optional<Latent>& latent_parameters_for(Accelerator& accelerator, DType dtype) {
  return dtype == DType::fp8 ? accelerator.latent_decode_fp8 : accelerator.latent_decode;
}

double latent_ratio(const Accelerator& accelerator, const MeasuredLatentDecode& row) {
  return to_seconds(latent_decode_time(accelerator, row.size)) / to_seconds(row.time);
}

FitQuality latent_quality(const Accelerator& accelerator, const std::vector<MeasuredLatentDecode>& rows) {
  return fit_quality(rows, [&](const MeasuredLatentDecode& row) { return latent_ratio(accelerator, row); });
}

auto latent_key(const MeasuredLatentDecode& row) {
  const LatentDecodeSize& size = row.size;
  return std::tuple(size.batch, size.seq, size.heads, size.key_width, size.value_width);
}

RowSplit<MeasuredLatentDecode> split_latent(std::span<const MeasuredLatentDecode> rows, const std::string& machine) {
  return split_by_group(rows, [&](const MeasuredLatentDecode& row) { return latent_decode_group(machine, row.size); });
}

bool has_enough_latent(const std::vector<MeasuredLatentDecode>& rows) {
  return count_sizes<MeasuredLatentDecode>(rows, latent_key) >= fewest_latent_sizes;
}

LatentDecodeFit fit_few_latent(const Accelerator& accelerator, std::span<const MeasuredLatentDecode> calls,
                               const std::string& source) {
  const std::vector<MeasuredLatentDecode> rows = one_per_size(calls, latent_key);
  Accelerator tried = accelerator;
  std::optional<Latent>& parameters = latent_parameters_for(tried, rows.front().size.dtype);
  check(parameters.has_value(), "few rows have a prior");
  const std::vector<Knob<Latent>> knobs = knobs_of_latent_decoding(parameters);
  PriorFit fit = fit_few<Latent>(knobs, *parameters,
                                 {.count = rows.size(),
                                  .log_ratio = [&](std::size_t i) { return math::log(latent_ratio(tried, rows[i])); },
                                  .residual = parameters->fit.residual,
                                  .source = source});
  const FitQuality fitted = latent_quality(tried, rows);
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

bool can_fit_latent_decode(const Accelerator& accelerator, std::span<const MeasuredLatentDecode> rows,
                           const std::string& machine) {
  return !rows.empty() && (latent_decode_of(accelerator, rows.front().size.dtype) != nullptr ||
                           has_enough_latent(split_latent(rows, machine).kept));
}

LatentDecodeFit fit_latent_decode(const Accelerator& accelerator, std::span<const MeasuredLatentDecode> rows,
                                  const std::string& machine, const std::string& source) {
  check(can_fit_latent_decode(accelerator, rows, machine), "the rows determine the parameters");
  const RowSplit<MeasuredLatentDecode> split = split_latent(rows, machine);
  if (!has_enough_latent(split.kept)) {
    return fit_few_latent(accelerator, rows, source);
  }
  Accelerator tried = accelerator;
  std::optional<Latent>& parameters = latent_parameters_for(tried, rows.front().size.dtype);
  const std::vector<Knob<Latent>> knobs = knobs_of_latent_decoding(parameters);
  if (!parameters) {
    parameters.emplace();
  }
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<Latent>(knobs, values, *parameters);
    for (std::size_t i = 0; i < split.kept.size(); ++i) {
      out[i] = math::log(latent_ratio(tried, split.kept[i]));
    }
  };
  LatentDecodeFit result;
  RobustFit fit =
      robust_fit(fit_parameters<Latent>(knobs), split.kept.size(), residuals,
                 {.max_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3, .groups = split.groups});
  set_fitted<Latent>(knobs, fit, source, *parameters);
  result.fitted_parameters = std::move(fit.parameters);
  result.fitted = latent_quality(tried, split.kept);
  result.held_out = latent_quality(tried, split.held_out);
  result.accelerator = std::move(tried);
  return result;
}

std::string latent_decode_yaml(const LatentDecodeFit& fit, DType dtype, int indent) {
  const LatentDecodeKernel* const parameters = latent_decode_of(fit.accelerator, dtype);
  const std::vector<Knob<Latent>> knobs = knobs_of_latent_decoding(*parameters);
  return knobs_yaml<Latent>(knobs_in<Latent>(knobs, fit.fitted_parameters), *parameters, indent);
}

}  // namespace commfuse
