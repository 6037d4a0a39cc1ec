// SPDX-License-Identifier: Apache-2.0
#include "model/fit/decode_attention_fit.h"

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

constexpr std::size_t fewest_decode_sizes = 60;

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

std::vector<Knob<Decode>> knobs_of_decoding(const std::optional<Decode>& base) {
  std::vector<Knob<Decode>> knobs(packed_decode_knobs.begin(), packed_decode_knobs.end());
  if (!base || base->unpacked_block.value > Duration::zero()) {
    knobs.insert(knobs.end(), unpacked_decode_knobs.begin(), unpacked_decode_knobs.end());
  }
  return knobs;
}

std::optional<Decode>& parameters_for(Accelerator& accelerator, DType dtype) {
  return dtype == DType::fp8 ? accelerator.decode_attention_fp8 : accelerator.decode_attention;
}

double decode_ratio(const Accelerator& accelerator, const MeasuredAttention& row) {
  return to_seconds(decode_attention_time(accelerator, row.size)) / to_seconds(row.time);
}

FitQuality decode_quality(const Accelerator& accelerator, const std::vector<MeasuredAttention>& rows) {
  return fit_quality(rows, [&](const MeasuredAttention& row) { return decode_ratio(accelerator, row); });
}

auto decode_key(const MeasuredAttention& row) {
  const AttentionSize& size = row.size;
  return std::tuple(size.batch, size.seq, size.heads, size.kv_heads, size.head_dim);
}

RowSplit<MeasuredAttention> split_decoding(std::span<const MeasuredAttention> rows, const std::string& machine) {
  return split_by_group(rows, [&](const MeasuredAttention& row) { return decode_attention_group(machine, row.size); });
}

bool has_enough_decodes(const std::vector<MeasuredAttention>& rows) {
  return count_sizes<MeasuredAttention>(rows, decode_key) >= fewest_decode_sizes;
}

DecodeAttentionFit fit_few_decodes(const Accelerator& accelerator, std::span<const MeasuredAttention> calls,
                                   const std::string& source) {
  const std::vector<MeasuredAttention> rows = one_per_size(calls, decode_key);
  Accelerator tried = accelerator;
  std::optional<Decode>& parameters = parameters_for(tried, rows.front().size.dtype);
  check(parameters.has_value(), "few rows have a prior");
  const std::vector<Knob<Decode>> knobs = knobs_of_decoding(parameters);
  PriorFit fit = fit_few<Decode>(knobs, *parameters,
                                 {.count = rows.size(),
                                  .log_ratio = [&](std::size_t i) { return math::log(decode_ratio(tried, rows[i])); },
                                  .residual = parameters->fit.residual,
                                  .source = source});
  const FitQuality fitted = decode_quality(tried, rows);
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

bool can_fit_decode_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                              const std::string& machine) {
  return !rows.empty() && (decode_attention_of(accelerator, rows.front().size.dtype) != nullptr ||
                           has_enough_decodes(split_decoding(rows, machine).kept));
}

DecodeAttentionFit fit_decode_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                                        const std::string& machine, const std::string& source) {
  check(can_fit_decode_attention(accelerator, rows, machine), "the rows determine the parameters");
  const RowSplit<MeasuredAttention> split = split_decoding(rows, machine);
  if (!has_enough_decodes(split.kept)) {
    return fit_few_decodes(accelerator, rows, source);
  }
  Accelerator tried = accelerator;
  std::optional<Decode>& parameters = parameters_for(tried, rows.front().size.dtype);
  const std::vector<Knob<Decode>> knobs = knobs_of_decoding(parameters);
  if (!parameters) {
    parameters.emplace();
  }
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<Decode>(knobs, values, *parameters);
    for (std::size_t i = 0; i < split.kept.size(); ++i) {
      out[i] = math::log(decode_ratio(tried, split.kept[i]));
    }
  };
  DecodeAttentionFit result;
  RobustFit fit =
      robust_fit(fit_parameters<Decode>(knobs), split.kept.size(), residuals,
                 {.max_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3, .groups = split.groups});
  set_fitted<Decode>(knobs, fit, source, *parameters);
  result.fitted_parameters = std::move(fit.parameters);
  result.fitted = decode_quality(tried, split.kept);
  result.held_out = decode_quality(tried, split.held_out);
  result.accelerator = std::move(tried);
  return result;
}

std::string decode_attention_yaml(const DecodeAttentionFit& fit, DType dtype, int indent) {
  const DecodeAttention* const parameters = decode_attention_of(fit.accelerator, dtype);
  const std::vector<Knob<Decode>> knobs = knobs_of_decoding(*parameters);
  return knobs_yaml<Decode>(knobs_in<Decode>(knobs, fit.fitted_parameters), *parameters, indent);
}

}  // namespace commfuse
