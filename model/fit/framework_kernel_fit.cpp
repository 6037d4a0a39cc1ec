// SPDX-License-Identifier: Apache-2.0
#include "model/fit/framework_kernel_fit.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/fit/few_rows.h"
#include "model/fit/holdout.h"
#include "model/fit/knobs.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::size_t fewest_kernel_sizes = 100;
constexpr double residual_of_kernels = 0.1;  // p68 of the held-out rows of public tables

using Kernels = FrameworkKernels;
constexpr std::array kernel_knobs{
    Knob<Kernels>{"floor", &Kernels::floor, 1.5, 0.05, 20.0},
    Knob<Kernels>{"sum_efficiency", &Kernels::sum_efficiency, 0.88, 0.1, 1.0},
    Knob<Kernels>{"cached_saving", &Kernels::cached_saving, 0.3, 0.001, 1.0},
    Knob<Kernels>{"norm_efficiency", &Kernels::norm_efficiency, 0.5, 0.05, 1.0},
    Knob<Kernels>{"norm_step", &Kernels::norm_step, 0.5, 0.001, 20.0},
    Knob<Kernels>{"activation_efficiency", &Kernels::activation_efficiency, 0.5, 0.05, 1.0},
    Knob<Kernels>{"activation_step", &Kernels::activation_step, 0.5, 0.001, 20.0},
    Knob<Kernels>{"rotation_efficiency", &Kernels::rotation_efficiency, 0.5, 0.05, 1.0},
    Knob<Kernels>{"rotation_step", &Kernels::rotation_step, 0.5, 0.001, 20.0}};
// Knobs for an accelerator whose kernels were not measured one by one.
constexpr std::array plain_knobs{
    Knob<Accelerator>{"memory_bound_efficiency", &Accelerator::memory_bound_efficiency, 0.5, 0.002, 1.0}};
constexpr std::array all_kernels{FrameworkKernel::sum, FrameworkKernel::norm, FrameworkKernel::activation,
                                 FrameworkKernel::rotation};

double ratio_of(const Accelerator& accelerator, const MeasuredFrameworkKernel& row) {
  return to_seconds(framework_kernel_time(accelerator, row.size)) / to_seconds(row.time);
}

FitQuality quality_on(const Accelerator& accelerator, const std::vector<MeasuredFrameworkKernel>& rows) {
  return fit_quality(rows, [&](const MeasuredFrameworkKernel& row) { return ratio_of(accelerator, row); });
}

auto kernel_key(const MeasuredFrameworkKernel& row) {
  return std::tuple(row.size.kernel, row.size.rows, row.size.width, row.size.traffic.count);
}

bool is_enough(const std::vector<MeasuredFrameworkKernel>& rows) {
  return count_sizes<MeasuredFrameworkKernel>(rows, kernel_key) >= fewest_kernel_sizes &&
         std::all_of(all_kernels.begin(), all_kernels.end(), [&](FrameworkKernel kernel) {
           return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.size.kernel == kernel; });
         });
}

FrameworkKernelFit fit_few_kernels(const Accelerator& accelerator, std::span<const MeasuredFrameworkKernel> calls,
                                   const std::string& source) {
  const std::vector<MeasuredFrameworkKernel> rows = one_per_size(calls, kernel_key);
  Accelerator tried = accelerator;
  const FewRows few{.count = rows.size(),
                    .log_ratio = [&](std::size_t i) { return math::log(ratio_of(tried, rows[i])); },
                    .residual = residual_of_kernels,
                    .source = source};
  PriorFit fit = tried.framework_kernels ? fit_few<Kernels>(kernel_knobs, *tried.framework_kernels, few)
                                         : fit_few<Accelerator>(plain_knobs, tried, few);
  const FitQuality fitted = quality_on(tried, rows);
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

FrameworkKernelFit fit_framework_kernels(const Accelerator& accelerator, std::span<const MeasuredFrameworkKernel> rows,
                                         const std::string& machine, const std::string& source) {
  check(!rows.empty(), "a fit has rows");
  const RowSplit<MeasuredFrameworkKernel> split = split_by_group(rows, [&](const MeasuredFrameworkKernel& row) {
    check(row.time > Duration{0}, "a measured kernel took time");
    return framework_kernel_group(machine, row.op, row.size.width);
  });
  if (!is_enough(split.kept)) {
    return fit_few_kernels(accelerator, rows, source);
  }
  Accelerator tried = accelerator;
  FrameworkKernels& parameters = tried.framework_kernels.emplace();
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<Kernels>(kernel_knobs, values, parameters);
    for (std::size_t i = 0; i < split.kept.size(); ++i) {
      out[i] = math::log(ratio_of(tried, split.kept[i]));
    }
  };
  FrameworkKernelFit result;
  RobustFit fit =
      robust_fit(fit_parameters<Kernels>(kernel_knobs), split.kept.size(), residuals,
                 {.max_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3, .groups = split.groups});
  set_fitted<Kernels>(kernel_knobs, fit, source, parameters);
  result.fitted_parameters = std::move(fit.parameters);
  result.fitted = quality_on(tried, split.kept);
  result.held_out = quality_on(tried, split.held_out);
  result.accelerator = std::move(tried);
  return result;
}

std::string framework_kernels_yaml(const FrameworkKernelFit& fit, int indent) {
  const Accelerator& accelerator = fit.accelerator;
  return accelerator.framework_kernels
             ? knobs_yaml<Kernels>(knobs_in<Kernels>(kernel_knobs, fit.fitted_parameters),
                                   *accelerator.framework_kernels, indent)
             : knobs_yaml<Accelerator>(knobs_in<Accelerator>(plain_knobs, fit.fitted_parameters), accelerator, indent);
}

}  // namespace commfuse
