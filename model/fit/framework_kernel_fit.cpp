// SPDX-License-Identifier: Apache-2.0
#include "model/fit/framework_kernel_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "model/check.h"
#include "model/config_error.h"
#include "model/fit/holdout.h"
#include "model/fit/knobs.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr std::size_t fewest_rows = 100;

using P = FrameworkKernels;
constexpr std::array knobs{Knob<P>{"floor", &P::floor, 1.5, 0.05, 20.0},
                           Knob<P>{"sum_efficiency", &P::sum_efficiency, 0.88, 0.1, 1.0},
                           Knob<P>{"cached_saving", &P::cached_saving, 0.3, 0.001, 1.0},
                           Knob<P>{"norm_efficiency", &P::norm_efficiency, 0.5, 0.05, 1.0},
                           Knob<P>{"norm_step", &P::norm_step, 0.5, 0.001, 20.0},
                           Knob<P>{"activation_efficiency", &P::activation_efficiency, 0.5, 0.05, 1.0},
                           Knob<P>{"activation_step", &P::activation_step, 0.5, 0.001, 20.0},
                           Knob<P>{"rotation_efficiency", &P::rotation_efficiency, 0.5, 0.05, 1.0},
                           Knob<P>{"rotation_step", &P::rotation_step, 0.5, 0.001, 20.0}};
constexpr std::array all_kernels{FrameworkKernel::sum, FrameworkKernel::norm, FrameworkKernel::activation,
                                 FrameworkKernel::rotation};

double ratio_of(const Accelerator& accelerator, const MeasuredFrameworkKernel& row) {
  return to_seconds(framework_kernel_time(accelerator, row.size)) / to_seconds(row.time);
}

FitQuality quality_on(const Accelerator& accelerator, const std::vector<MeasuredFrameworkKernel>& rows) {
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const MeasuredFrameworkKernel& row : rows) {
    errors.push_back(std::abs(ratio_of(accelerator, row) - 1.0));
  }
  return fit_quality(errors);
}

void require_enough(const std::vector<MeasuredFrameworkKernel>& rows, const std::string& source) {
  if (rows.size() < fewest_rows) {
    throw ConfigError(
        fmt::format("{} has {} memory-bound kernels to fit; measure at least {}", source, rows.size(), fewest_rows));
  }
  for (const FrameworkKernel kernel : all_kernels) {
    const auto is_one = [kernel](const MeasuredFrameworkKernel& row) { return row.size.kernel == kernel; };
    if (std::none_of(rows.begin(), rows.end(), is_one)) {
      throw ConfigError(
          fmt::format("{} lacks one of sum, norm, activation and rotation; measure them at several widths", source));
    }
  }
}

}  // namespace

FrameworkKernelFit fit_framework_kernels(const Accelerator& accelerator, std::span<const MeasuredFrameworkKernel> rows,
                                         const std::string& machine, const std::string& source) {
  std::vector<MeasuredFrameworkKernel> kept;
  std::vector<MeasuredFrameworkKernel> held;
  std::map<std::string, int> groups;
  FitOptions options{.most_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3};
  for (const MeasuredFrameworkKernel& row : rows) {
    check(row.time > Duration{0}, "a measured kernel took time");
    const std::string group = framework_kernel_group(machine, row.op, row.size.width);
    if (held_back(group)) {
      held.push_back(row);
      continue;
    }
    kept.push_back(row);
    options.groups.push_back(groups.try_emplace(group, static_cast<int>(groups.size())).first->second);
  }
  require_enough(kept, source);
  Accelerator tried = accelerator;
  FrameworkKernels& parameters = tried.framework_kernels.emplace();
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<P>(knobs, values, parameters);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      out[i] = math::log(ratio_of(tried, kept[i]));
    }
  };
  FrameworkKernelFit result;
  result.fit = robust_fit(fit_parameters<P>(knobs), kept.size(), residuals, options);
  set_fitted<P>(knobs, result.fit, source, parameters);
  result.parameters = parameters;
  result.fitted = quality_on(tried, kept);
  result.held_back = quality_on(tried, held);
  return result;
}

std::string framework_kernels_yaml(const FrameworkKernels& parameters, int indent) {
  return knobs_yaml<P>(knobs, parameters, indent);
}

}  // namespace commfuse
