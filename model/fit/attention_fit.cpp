// SPDX-License-Identifier: Apache-2.0
#include "model/fit/attention_fit.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "model/check.h"
#include "model/config_error.h"
#include "model/fit/holdout.h"
#include "model/fit/knobs.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::size_t fewest_rows = 30;

using P = AttentionParameters;
constexpr std::array knobs{Knob<P>{"overhead", &P::overhead, 12.0, 0.5, 100.0},
                           Knob<P>{"loop_efficiency", &P::loop_efficiency, 0.7, 0.1, 1.0},
                           Knob<P>{"exponentials", &P::exponentials, 6.0, 0.5, 1000.0},
                           Knob<P>{"masked_width", &P::masked_width, 128.0, 32.0, 256.0},
                           Knob<P>{"tile_overhead", &P::tile_overhead, 2.0, 0.01, 50.0},
                           Knob<P>{"query_cost", &P::query_cost, 1.0, 0.1, 20.0},
                           Knob<P>{"key_cost", &P::key_cost, 1.5, 0.01, 20.0},
                           Knob<P>{"imbalance", &P::imbalance, 0.6, 0.01, 3.0}};

double ratio_of(const Accelerator& accelerator, const MeasuredAttention& row) {
  return to_seconds(attention_time(accelerator, row.size, accelerator.sms)) / to_seconds(row.time);
}

FitQuality quality_on(const Accelerator& accelerator, const std::vector<MeasuredAttention>& rows) {
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const MeasuredAttention& row : rows) {
    errors.push_back(std::abs(ratio_of(accelerator, row) - 1.0));
  }
  return fit_quality(errors);
}

}  // namespace

AttentionFit fit_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                           const std::string& machine, const std::string& source) {
  std::vector<MeasuredAttention> kept;
  std::vector<MeasuredAttention> held;
  std::map<std::string, int> groups;
  FitOptions options{.most_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3};
  for (const MeasuredAttention& row : rows) {
    check(row.time > Duration{0}, "a measured call took time");
    const std::string group =
        attention_group("attention", machine, row.size.heads, row.size.kv_heads, row.size.head_dim);
    if (held_back(group)) {
      held.push_back(row);
      continue;
    }
    kept.push_back(row);
    options.groups.push_back(groups.try_emplace(group, static_cast<int>(groups.size())).first->second);
  }
  if (kept.size() < fewest_rows) {
    throw ConfigError(
        fmt::format("{} has {} attention calls to fit; measure at least {}", source, kept.size(), fewest_rows));
  }
  Accelerator tried = accelerator;
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<P>(knobs, values, tried.attention);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      out[i] = math::log(ratio_of(tried, kept[i]));
    }
  };
  AttentionFit result;
  result.fit = robust_fit(fit_parameters<P>(knobs), kept.size(), residuals, options);
  set_fitted<P>(knobs, result.fit, source, tried.attention);
  result.parameters = tried.attention;
  result.fitted = quality_on(tried, kept);
  result.held_back = quality_on(tried, held);
  return result;
}

std::string attention_yaml(const AttentionParameters& parameters, int indent) {
  return knobs_yaml<P>(knobs, parameters, indent);
}

}  // namespace commfuse
