// SPDX-License-Identifier: Apache-2.0
#include "model/fit/gemm_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "model/check.h"
#include "model/fit/few_rows.h"
#include "model/fit/holdout.h"
#include "model/fit/kernel_choice_fit.h"
#include "model/fit/knobs.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::size_t fewest_gemm_sizes = 50;

// The cost of slicing determines which strategy wins, so the fit emphasizes it: GEMMs large enough to slice have weight
// 2, and the ratio of a part's time to the time of the whole GEMM, if both were measured, has weight 4.
constexpr double large_weight = 2.0;
constexpr double slicing_weight = 4.0;
constexpr std::int64_t large_rows = 512;
constexpr std::int64_t large_width = 1024;
constexpr std::array<std::int64_t, 2> slicings{4, 8};

using GemmKnob = Knob<GemmParameters>;
using Gemm = GemmParameters;
constexpr std::array gemm_knobs{GemmKnob{"loop_efficiency", &Gemm::loop_efficiency, 0.9, 0.2, 2.0},
                                GemmKnob{"hbm_efficiency", &Gemm::hbm_efficiency, 0.85, 0.3, 1.0},
                                GemmKnob{"cached_input_cost", &Gemm::cached_input_cost, 0.6, 0.01, 3.0},
                                GemmKnob{"output_cost", &Gemm::output_cost, 1.0, 0.01, 5.0},
                                GemmKnob{"ramp", &Gemm::ramp, 2.5, 0.1, 50.0},
                                GemmKnob{"wave_overhead", &Gemm::wave_overhead, 0.8, 1e-3, 50.0},
                                GemmKnob{"split_overhead", &Gemm::split_overhead, 2.5, 0.01, 50.0},
                                GemmKnob{"tile_256x128", &Gemm::tile_256x128, 1.1, 0.2, 2.0},
                                GemmKnob{"tile_64x256", &Gemm::tile_64x256, 0.8, 0.1, 1.5},
                                GemmKnob{"tile_128x64", &Gemm::tile_128x64, 0.6, 0.1, 1.5},
                                GemmKnob{"tile_64x64", &Gemm::tile_64x64, 0.5, 0.05, 1.5},
                                GemmKnob{"wave_quantum", &Gemm::wave_quantum, 0.5, 0.01, 1.0},
                                GemmKnob{"unhidden", &Gemm::unhidden, 0.3, 0.001, 1.0},
                                GemmKnob{"join_cost", &Gemm::join_cost, 0.5, 0.01, 5.0}};
constexpr std::array power_knobs{GemmKnob{"burst_efficiency", &Gemm::burst_efficiency, 0.85, 0.2, 1.5},
                                 GemmKnob{"sustained_share", &Gemm::sustained_share, 0.9, 0.5, 1.0},
                                 GemmKnob{"burst_time", &Gemm::burst_time, 1000.0, 10.0, 100'000.0}};
constexpr std::array resident_knobs{GemmKnob{"cached_weight_cost", &Gemm::cached_weight_cost, 0.5, 0.01, 1.0}};
constexpr std::array resident_output_knobs{GemmKnob{"cached_output_cost", &Gemm::cached_output_cost, 0.5, 0.01, 5.0}};
constexpr std::array conversion_knobs{
    GemmKnob{"conversion_passes", &Gemm::conversion_passes, 6.0, 0.1, 20.0},
    GemmKnob{"cached_conversion_cost", &Gemm::cached_conversion_cost, 0.6, 0.01, 2.0}};

constexpr std::array feed_knobs{GemmKnob{"operand_feed", &Gemm::operand_feed, 1.2, 0.3, 30.0}};

std::vector<GemmKnob> knobs_of(const GemmFitOptions& options) {
  std::vector<GemmKnob> knobs(gemm_knobs.begin(), gemm_knobs.end());
  if (options.has_power_ceiling) {
    knobs.insert(knobs.end(), power_knobs.begin(), power_knobs.end());
  }
  if (options.has_conversion) {
    knobs.insert(knobs.end(), conversion_knobs.begin(), conversion_knobs.end());
  }
  if (options.has_resident_weights) {
    knobs.insert(knobs.end(), resident_knobs.begin(), resident_knobs.end());
  }
  if (options.has_resident_output) {
    knobs.insert(knobs.end(), resident_output_knobs.begin(), resident_output_knobs.end());
  }
  if (options.has_operand_feed) {
    knobs.insert(knobs.end(), feed_knobs.begin(), feed_knobs.end());
  }
  return knobs;
}

/// The minimum over tiles gives the loss several valleys, and a fit may miss the deepest; fits therefore start from a
/// low and from a high power ceiling.
constexpr std::array burst_starts{0.85, 1.05};

std::vector<FitParameter> parameters_of(std::span<const GemmKnob> knobs, double burst_start) {
  std::vector<FitParameter> parameters = fit_parameters(knobs);
  for (FitParameter& parameter : parameters) {
    if (parameter.name == "burst_efficiency") {
      parameter.start = burst_start;
    }
  }
  return parameters;
}

/// Returns the best of the fits from all starts, by the sum of |residual|.
RobustFit fit_from_all_starts(std::span<const GemmKnob> knobs, const std::vector<int>& groups,
                              const Residuals& residuals) {
  const FitOptions options{.max_iterations = 60, .tolerance = 1e-5, .difference_step = 1e-3, .groups = groups};
  const auto loss = [](const RobustFit& fit) {
    return std::accumulate(fit.residuals.begin(), fit.residuals.end(), 0.0,
                           [](double sum, double residual) { return sum + std::abs(residual); });
  };
  RobustFit best;
  for (const double start : burst_starts) {
    RobustFit fit = robust_fit(parameters_of(knobs, start), groups.size(), residuals, options);
    if (best.residuals.empty() || loss(fit) < loss(best)) {
      best = std::move(fit);
    }
  }
  return best;
}

double ratio_of(const Accelerator& accelerator, const MeasuredGemm& row) {
  const Duration predicted = estimate_gemm(accelerator, row.size, accelerator.sms).time;
  return to_seconds(predicted) / to_seconds(row.time);
}

FitQuality quality_on(const Accelerator& accelerator, const std::vector<MeasuredGemm>& rows) {
  return fit_quality(rows, [&](const MeasuredGemm& row) { return ratio_of(accelerator, row); });
}

bool is_large(const GemmSize& size) { return size.m >= large_rows && size.n >= large_width && size.k >= large_width; }

/// A row (`whole`), and a row of the same n and k with a part of its m.
struct Slicing {
  std::size_t part = 0;
  std::size_t whole = 0;
};

std::vector<Slicing> slicings_in(const std::vector<MeasuredGemm>& rows) {
  std::map<std::array<std::int64_t, 3>, std::size_t> row_of_size;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    row_of_size[{rows[i].size.m, rows[i].size.n, rows[i].size.k}] = i;
  }
  std::vector<Slicing> pairs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const GemmSize& size = rows[i].size;
    for (const std::int64_t parts : slicings) {
      const auto part = row_of_size.find({size.m / parts, size.n, size.k});
      if (size.m % parts == 0 && part != row_of_size.end() && is_large(rows[part->second].size)) {
        pairs.push_back({.part = part->second, .whole = i});
      }
    }
  }
  return pairs;
}

auto gemm_key(const MeasuredGemm& row) {
  const GemmSize& size = row.size;
  return std::tuple(size.m, size.n, size.k, size.out, size.weight_bits, size.accumulate, size.run.count,
                    size.weight_copies);
}

/// Fits a table of kernel choice to measured / predicted of the kept rows. `tried` must have no such table.
std::shared_ptr<const KernelChoice> fitted_choice(const Accelerator& tried, const RowSplit<MeasuredGemm>& split,
                                                  const std::string& source) {
  std::vector<ChoiceRow> choice_rows;
  choice_rows.reserve(split.kept.size());
  for (std::size_t i = 0; i < split.kept.size(); ++i) {
    const GemmSize& size = split.kept[i].size;
    choice_rows.push_back({.shape = {.tiles_per_sm = static_cast<double>(tiles_of_128(size)) / tried.sms,
                                     .k = size.k,
                                     .m = size.m,
                                     .n = size.n},
                           .log_ratio = -math::log(ratio_of(tried, split.kept[i])),
                           .fold = split.groups[i] % choice_folds});
  }
  KernelChoice choice = fit_kernel_choice(choice_rows);
  choice.provenance = Provenance::fitted;
  choice.source = source;
  return std::make_shared<const KernelChoice>(std::move(choice));
}

GemmFit fit_few_gemms(const Accelerator& accelerator, DType dtype, std::span<const MeasuredGemm> gemms,
                      const GemmFitOptions& options) {
  const std::vector<MeasuredGemm> rows = one_per_size(gemms, gemm_key);
  Accelerator tried = accelerator;
  MatrixUnit& unit = *tried.matrix_units[index_of(dtype)];
  const bool has_copies =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.size.weight_copies > 0; });
  const std::vector<GemmKnob> knobs =
      knobs_of({.has_power_ceiling = true,
                .has_conversion = unit.gemm.conversion_passes.value > 0.0,
                .has_resident_weights = has_copies && unit.gemm.resident_share.value > 0.0,
                .has_resident_output = unit.gemm.resident_output_share.value > 0.0,
                .has_operand_feed = unit.gemm.operand_feed.value > 0.0});
  PriorFit fit =
      fit_few<GemmParameters>(knobs, unit.gemm,
                              {.count = rows.size(),
                               .log_ratio = [&](std::size_t i) { return math::log(ratio_of(tried, rows[i])); },
                               .residual = unit.fit.residual,
                               .source = options.source});
  return {.parameters = unit.gemm,
          .fitted_parameters = std::move(fit.parameters),
          .left = std::move(fit.left),
          .distance = fit.distance,
          .has_few = true,
          .medians = rows,
          .fitted = quality_on(tried, rows),
          .held_out = {}};
}

}  // namespace

GemmFit fit_gemm(const Accelerator& accelerator, DType dtype, std::span<const MeasuredGemm> rows,
                 const GemmFitOptions& options) {
  check(!rows.empty(), "a fit has rows");
  const RowSplit<MeasuredGemm> split = split_by_group(rows, [&](const MeasuredGemm& row) {
    check(row.size.dtype == dtype && row.time > Duration{0}, "rows of one fit share their dtype and took time");
    return gemm_group("gemm", options.machine, name_of(dtype), row.size);
  });
  if (count_sizes<MeasuredGemm>(split.kept, gemm_key) < fewest_gemm_sizes) {
    return fit_few_gemms(accelerator, dtype, rows, options);
  }
  const std::vector<GemmKnob> knobs = knobs_of(options);
  Accelerator tried = accelerator;
  GemmParameters& parameters = tried.matrix_units[index_of(dtype)]->gemm;
  parameters = {.resident_share = parameters.resident_share,
                .resident_output_share = parameters.resident_output_share,
                .operand_feed = parameters.operand_feed};
  const bool has_enough = split.kept.size() >= min_choice_rows;
  if (has_enough) {
    tried.matrix_units[index_of(dtype)]->kernel_choice = nullptr;
  }
  const std::vector<Slicing> slicing_pairs = slicings_in(split.kept);
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<GemmParameters>(knobs, values, parameters);
    std::vector<double> logs(split.kept.size());
    for (std::size_t i = 0; i < logs.size(); ++i) {
      logs[i] = math::log(ratio_of(tried, split.kept[i]));
      out[i] = is_large(split.kept[i].size) ? large_weight * logs[i] : logs[i];
    }
    for (std::size_t i = 0; i < slicing_pairs.size(); ++i) {
      out[logs.size() + i] = slicing_weight * (logs[slicing_pairs[i].part] - logs[slicing_pairs[i].whole]);
    }
  };
  std::vector<int> groups = split.groups;
  for (const Slicing& slicing : slicing_pairs) {
    groups.push_back(split.groups[slicing.whole]);
  }
  GemmFit result;
  RobustFit fit = fit_from_all_starts(knobs, groups, residuals);
  set_fitted<GemmParameters>(knobs, fit, options.source, parameters);
  if (has_enough) {
    result.kernel_choice = fitted_choice(tried, split, options.source);
    tried.matrix_units[index_of(dtype)]->kernel_choice = result.kernel_choice;
  }
  result.fitted_parameters = std::move(fit.parameters);
  result.parameters = parameters;
  result.fitted = quality_on(tried, split.kept);
  result.held_out = quality_on(tried, split.held_out);
  return result;
}

std::string gemm_yaml(const GemmFit& fit, int indent) {
  const std::vector<GemmKnob> knobs = knobs_of({.has_power_ceiling = true,
                                                .has_conversion = true,
                                                .has_resident_weights = true,
                                                .has_resident_output = true,
                                                .has_operand_feed = true});
  return knobs_yaml<GemmParameters>(knobs_in<GemmParameters>(knobs, fit.fitted_parameters), fit.parameters, indent);
}

}  // namespace commfuse
