// SPDX-License-Identifier: Apache-2.0
#include "model/fit/custom_all_reduce_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "model/check.h"
#include "model/cost/custom_all_reduce.h"
#include "model/fit/prior_fit.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

/// A parameter with the bounds of its search: durations in microseconds, rates as shares of the capacity.
struct Knob {
  const char* name;
  std::variant<Parameter<Duration> CustomAllReduce::*, Parameter<BytesPerSecond> CustomAllReduce::*> where;
  double lower;
  double upper;
};

constexpr double least_step_us = 0.005;  // shorter steps are lost in the error of a clock
constexpr double most_us = 1000.0;
constexpr double least_share = 1e-3;

constexpr std::array knobs{Knob{"one_shot_latency", &CustomAllReduce::one_shot_latency, 0.1, most_us},
                           Knob{"one_shot_step", &CustomAllReduce::one_shot_step, least_step_us, most_us},
                           Knob{"one_shot_rate", &CustomAllReduce::one_shot_rate, least_share, 1.0},
                           Knob{"two_shot_latency", &CustomAllReduce::two_shot_latency, 0.1, most_us},
                           Knob{"two_shot_step", &CustomAllReduce::two_shot_step, least_step_us, most_us},
                           Knob{"two_shot_rate", &CustomAllReduce::two_shot_rate, least_share, 1.0}};
using Values = std::array<double, knobs.size()>;

void put(const Knob& knob, double value, BytesPerSecond capacity, CustomAllReduce& kernels) {
  if (const auto* const duration = std::get_if<Parameter<Duration> CustomAllReduce::*>(&knob.where)) {
    (kernels.**duration).value = from_seconds(1e-6 * value);
  } else {
    (kernels.*std::get<Parameter<BytesPerSecond> CustomAllReduce::*>(knob.where)).value = {value * capacity.value};
  }
}

/// Returns starts around the fastest row: one shot takes as long as it, two a multiple, and the rates are shares of the
/// capacity.
std::vector<Values> starts(std::span<const CustomAllReduceRow> rows) {
  constexpr double step = 0.02;  // of the latency
  double fastest_us = most_us;
  for (const CustomAllReduceRow& row : rows) {
    fastest_us = std::min(fastest_us, row.time_us);
  }
  std::vector<Values> starts;
  for (const double rate : {0.3, 0.6, 0.9}) {
    for (const double two_shot : {1.5, 3.0, 6.0}) {
      const double two_shot_us = two_shot * fastest_us;
      starts.push_back({fastest_us, step * fastest_us, rate, two_shot_us, step * two_shot_us, rate});
      for (std::size_t i = 0; i < knobs.size(); ++i) {
        starts.back()[i] = std::clamp(starts.back()[i], knobs[i].lower, knobs[i].upper);
      }
    }
  }
  return starts;
}

void conclude(const Knob& knob, const FittedParameter& fitted, const std::string& source, CustomAllReduce& kernels) {
  std::visit(
      [&](auto where) {
        auto& parameter = kernels.*where;
        parameter.standard_error = fitted.standard_error;
        parameter.provenance = Provenance::fitted;
        parameter.source = source;
      },
      knob.where);
}

}  // namespace

CustomAllReduceFit fit_custom_all_reduce(std::span<const CustomAllReduceRow> rows, const Parameter<Bytes>& up_to,
                                         BytesPerSecond capacity, const std::string& source) {
  check(rows.size() >= least_custom_all_reduces, "a fit of all-reduce kernels has two rows per parameter");
  check(std::isfinite(capacity.value) && capacity.value > 0.0, "rates are shares of a known capacity");
  CustomAllReduceFit result;
  CustomAllReduce& kernels = result.parameters;
  kernels.up_to = up_to;
  const auto put_all = [&](std::span<const double> values) {
    for (std::size_t i = 0; i < knobs.size(); ++i) {
      put(knobs[i], values[i], capacity, kernels);
    }
  };
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    put_all(values);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double us = to_microseconds(custom_all_reduce_time(kernels, rows[i].ranks, rows[i].total));
      out[i] = math::log(us / rows[i].time_us);
    }
  };
  // Times are whole picoseconds, and a step of some nanoseconds changes by few of them.
  const FitOptions options{.spread = residual_of_a_row, .difference_step = 0.01};
  std::optional<RobustFit> best;
  for (const Values& start : starts(rows)) {
    std::vector<FitParameter> parameters;
    for (std::size_t i = 0; i < knobs.size(); ++i) {
      parameters.push_back(
          {.name = knobs[i].name, .start = start[i], .lower = knobs[i].lower, .upper = knobs[i].upper});
    }
    RobustFit fit = robust_fit(parameters, rows.size(), residuals, options);
    if (!best || fit.loss < best->loss) {
      best = std::move(fit);
    }
  }
  put_all(best->values());
  result.spread = best->spread;
  result.converged = best->converged;
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    FittedParameter fitted = best->parameters[i];
    const bool is_rate = std::holds_alternative<Parameter<BytesPerSecond> CustomAllReduce::*>(knobs[i].where);
    fitted.at_capacity = is_rate && fitted.undecided && fitted.value >= knobs[i].upper;
    fitted.undecided = fitted.undecided && !fitted.at_capacity;
    fitted.value *= is_rate ? capacity.value : 1.0;
    fitted.start *= is_rate ? capacity.value : 1.0;
    fitted.standard_error = fitted.at_capacity ? result.spread
                            : fitted.undecided ? 1.0
                                               : std::min(fitted.standard_error, 1.0);
    conclude(knobs[i], fitted, source, kernels);
    result.fitted_parameters.push_back(std::move(fitted));
  }
  return result;
}

}  // namespace commfuse
