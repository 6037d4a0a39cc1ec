// SPDX-License-Identifier: Apache-2.0
#include "model/fit/attention_fit.h"

#include <array>
#include <tuple>
#include <utility>

#include "model/check.h"
#include "model/fit/few_rows.h"
#include "model/fit/holdout.h"
#include "model/fit/knobs.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::size_t fewest_attention_sizes = 30;

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
constexpr std::array packed_knobs{Knob<Attention>{"split_cost", &Attention::split_cost, 1.4, 0.5, 4.0}};

/// Returns the knobs. Only kernels that pack heads (split_cost above 0) have a split_cost to fit.
std::vector<Knob<Attention>> knobs_of(const Attention& parameters) {
  std::vector<Knob<Attention>> knobs(attention_knobs.begin(), attention_knobs.end());
  if (parameters.split_cost.value > 0.0) {
    knobs.insert(knobs.end(), packed_knobs.begin(), packed_knobs.end());
  }
  return knobs;
}

double ratio_of(const Accelerator& accelerator, const MeasuredAttention& row) {
  return to_seconds(attention_time(accelerator, row.size, accelerator.sms)) / to_seconds(row.time);
}

FitQuality quality_on(const Accelerator& accelerator, const std::vector<MeasuredAttention>& rows) {
  return fit_quality(rows, [&](const MeasuredAttention& row) { return ratio_of(accelerator, row); });
}

auto attention_key(const MeasuredAttention& row) {
  const AttentionSize& size = row.size;
  return std::tuple(size.batch, size.seq, size.heads, size.kv_heads, size.head_dim, size.causal, size.dtype);
}

AttentionFit fit_few_calls(const Accelerator& accelerator, std::span<const MeasuredAttention> calls,
                           const std::string& source) {
  const std::vector<MeasuredAttention> rows = one_per_size(calls, attention_key);
  Accelerator tried = accelerator;
  const std::vector<Knob<Attention>> knobs = knobs_of(tried.attention);
  PriorFit fit = fit_few<Attention>(knobs, tried.attention,
                                    {.count = rows.size(),
                                     .log_ratio = [&](std::size_t i) { return math::log(ratio_of(tried, rows[i])); },
                                     .residual = tried.attention_fit.residual,
                                     .source = source});
  return {.parameters = tried.attention,
          .fitted_parameters = std::move(fit.parameters),
          .left = std::move(fit.left),
          .distance = fit.distance,
          .has_few = true,
          .medians = rows,
          .fitted = quality_on(tried, rows),
          .held_out = {}};
}

}  // namespace

AttentionFit fit_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                           const std::string& machine, const std::string& source) {
  check(!rows.empty(), "a fit has rows");
  const RowSplit<MeasuredAttention> split = split_by_group(rows, [&](const MeasuredAttention& row) {
    check(row.time > Duration{0}, "a measured call took time");
    return attention_group("attention", machine, row.size);
  });
  if (count_sizes<MeasuredAttention>(split.kept, attention_key) < fewest_attention_sizes) {
    return fit_few_calls(accelerator, rows, source);
  }
  Accelerator tried = accelerator;
  const std::vector<Knob<Attention>> knobs = knobs_of(tried.attention);
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<Attention>(knobs, values, tried.attention);
    for (std::size_t i = 0; i < split.kept.size(); ++i) {
      out[i] = math::log(ratio_of(tried, split.kept[i]));
    }
  };
  AttentionFit result;
  RobustFit fit =
      robust_fit(fit_parameters<Attention>(knobs), split.kept.size(), residuals,
                 {.max_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3, .groups = split.groups});
  set_fitted<Attention>(knobs, fit, source, tried.attention);
  result.fitted_parameters = std::move(fit.parameters);
  result.parameters = tried.attention;
  result.fitted = quality_on(tried, split.kept);
  result.held_out = quality_on(tried, split.held_out);
  return result;
}

std::string attention_yaml(const AttentionFit& fit, int indent) {
  const std::vector<Knob<Attention>> knobs = knobs_of(fit.parameters);
  return knobs_yaml<Attention>(knobs_in<Attention>(knobs, fit.fitted_parameters), fit.parameters, indent);
}

}  // namespace commfuse
