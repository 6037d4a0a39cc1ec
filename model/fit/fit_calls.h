// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of one kernel to measured calls. Only the .cpp files of the kernels' fits include it.
//
// A kernel is a type with these members:
//   Size, Parameters, Work         what a row measured; what the fit moves; what a price needs beside the parameters
//   fewest_sizes                   least number of sizes beyond the held-out rows; with fewer, the accelerator's
//                                  parameters are the prior
//   known(accelerator, dtype)      its parameters in the accelerator; null if there are none
//   parameters(accelerator, dtype) a mutable reference to them; created if there are none
//   scope(accelerator, dtype)      the scope of their fit
//   knobs(known, rows)             the parameters that the rows may move; `known` may be null
//   all_knobs()                    all parameters that a file may have
//   work(size), time(accelerator, size, work)
//   key(size)                      a tuple of everything that determines the time
//   group(machine, size)           the key that chooses the held-out rows
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/fit/call_fit.h"
#include "model/fit/few_rows.h"
#include "model/fit/holdout.h"
#include "model/fit/knobs.h"
#include "model/math/functions.h"

namespace commfuse {

/// Rows, each with the work of its call. The work depends on no parameter, so it is computed only once.
template <class Kernel>
class CallsOf {
 public:
  using Row = MeasuredCall<typename Kernel::Size>;

  explicit CallsOf(std::vector<Row> rows) : rows_(std::move(rows)) {
    work_.reserve(rows_.size());
    for (const Row& row : rows_) {
      work_.push_back(Kernel::work(row.size));
    }
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] double log_ratio(const Accelerator& accelerator, std::size_t row) const {
    return math::log(ratio(accelerator, row));
  }
  [[nodiscard]] FitQuality quality_on(const Accelerator& accelerator) const {
    std::vector<double> errors;
    errors.reserve(rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      errors.push_back(std::abs(ratio(accelerator, row) - 1.0));
    }
    return fit_quality(errors);
  }

 private:
  [[nodiscard]] double ratio(const Accelerator& accelerator, std::size_t row) const {
    return to_seconds(Kernel::time(accelerator, rows_[row].size, work_[row])) / to_seconds(rows_[row].time);
  }

  std::vector<Row> rows_;
  std::vector<typename Kernel::Work> work_;
};

template <class Kernel>
auto split_calls(std::span<const MeasuredCall<typename Kernel::Size>> rows, const std::string& machine) {
  return split_by_group(rows, [&](const auto& row) {
    check(row.time > Duration{0}, "a measured call took time");
    return Kernel::group(machine, row.size);
  });
}

template <class Kernel>
bool are_enough_calls(std::span<const MeasuredCall<typename Kernel::Size>> rows) {
  return count_sizes(rows, [](const auto& row) { return Kernel::key(row.size); }) >= Kernel::fewest_sizes;
}

/// Returns whether the rows determine the parameters: there are enough sizes beyond the held-out rows, or the
/// accelerator has parameters, which are then the prior of few rows. All rows must have one dtype.
template <class Kernel>
bool can_fit_calls(const Accelerator& accelerator, std::span<const MeasuredCall<typename Kernel::Size>> rows,
                   const std::string& machine) {
  return !rows.empty() && (Kernel::known(accelerator, rows.front().size.dtype) != nullptr ||
                           are_enough_calls<Kernel>(split_calls<Kernel>(rows, machine).kept));
}

template <class Kernel>
CallFit<typename Kernel::Size> fit_few_calls(const Accelerator& accelerator,
                                             std::span<const MeasuredCall<typename Kernel::Size>> rows,
                                             const std::string& source) {
  const CallsOf<Kernel> calls(one_per_size(rows, [](const auto& row) { return Kernel::key(row.size); }));
  const DType dtype = rows.front().size.dtype;
  CallFit<typename Kernel::Size> result{.accelerator = accelerator, .has_few = true, .medians = calls.rows()};
  Accelerator& tried = result.accelerator;
  const auto knobs = Kernel::knobs(Kernel::known(accelerator, dtype), calls.rows());
  PriorFit fit =
      fit_few<typename Kernel::Parameters>(knobs, Kernel::parameters(tried, dtype),
                                           {.count = calls.rows().size(),
                                            .log_ratio = [&](std::size_t i) { return calls.log_ratio(tried, i); },
                                            .residual = Kernel::scope(accelerator, dtype).residual,
                                            .source = source});
  result.fitted_parameters = std::move(fit.parameters);
  result.left = std::move(fit.left);
  result.distance = fit.distance;
  result.fitted = calls.quality_on(tried);
  return result;
}

/// Fits by robust least squares on log(predicted / measured); rows of one group count as one observation in the
/// standard errors. `machine` is the machine's name in the table (part of the key that selects the held-out rows),
/// `source` the table's name. Requires can_fit_calls() and times above 0.
template <class Kernel>
CallFit<typename Kernel::Size> fit_calls(const Accelerator& accelerator,
                                         std::span<const MeasuredCall<typename Kernel::Size>> rows,
                                         const std::string& machine, const std::string& source) {
  check(can_fit_calls<Kernel>(accelerator, rows, machine), "the rows determine the parameters");
  auto split = split_calls<Kernel>(rows, machine);
  if (!are_enough_calls<Kernel>(split.kept)) {
    return fit_few_calls<Kernel>(accelerator, rows, source);
  }
  using Parameters = typename Kernel::Parameters;
  const CallsOf<Kernel> kept(std::move(split.kept));
  const DType dtype = rows.front().size.dtype;
  CallFit<typename Kernel::Size> result{.accelerator = accelerator};
  Accelerator& tried = result.accelerator;
  const std::vector<Knob<Parameters>> knobs = Kernel::knobs(Kernel::known(accelerator, dtype), kept.rows());
  Parameters& parameters = Kernel::parameters(tried, dtype);
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    set_knobs<Parameters>(knobs, values, parameters);
    for (std::size_t i = 0; i < kept.rows().size(); ++i) {
      out[i] = kept.log_ratio(tried, i);
    }
  };
  RobustFit fit =
      robust_fit(fit_parameters<Parameters>(knobs), kept.rows().size(), residuals,
                 {.max_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3, .groups = split.groups});
  set_fitted<Parameters>(knobs, fit, source, parameters);
  result.fitted_parameters = std::move(fit.parameters);
  result.fitted = kept.quality_on(tried);
  result.held_out = CallsOf<Kernel>(std::move(split.held_out)).quality_on(tried);
  return result;
}

/// Returns the lines of a hardware file's map that the fit determined, each indented by `indent` spaces.
template <class Kernel>
std::string calls_yaml(const CallFit<typename Kernel::Size>& fit, DType dtype, int indent) {
  using Parameters = typename Kernel::Parameters;
  const Parameters* const parameters = Kernel::known(fit.accelerator, dtype);
  check(parameters != nullptr, "a fit has parameters");
  const std::vector<Knob<Parameters>> knobs = Kernel::all_knobs();
  return knobs_yaml<Parameters>(knobs_in<Parameters>(knobs, fit.fitted_parameters), *parameters, indent);
}

}  // namespace commfuse
