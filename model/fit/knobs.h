// SPDX-License-Identifier: Apache-2.0
// Maps the parameters of a cost formula, which are members of a struct, to the list of numbers that a fit moves.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "model/fit/parameter_yaml.h"
#include "model/fit/robust_fit.h"
#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// One parameter of `Parameters`, with the start and the bounds of its fit: durations in microseconds, rates in
/// TFLOP/s.
template <class Parameters>
struct Knob {
  const char* name;
  std::variant<Parameter<double> Parameters::*, Parameter<Duration> Parameters::*,
               Parameter<FlopsPerSecond> Parameters::*>
      where;
  double start;
  double lower;
  double upper;
};

inline double knob_number(const Parameter<double>& parameter) { return parameter.value; }
inline double knob_number(const Parameter<Duration>& parameter) { return to_microseconds(parameter.value); }
inline double knob_number(const Parameter<FlopsPerSecond>& parameter) { return parameter.value.value / 1e12; }

inline void set_knob(Parameter<double>& parameter, double value) { parameter.value = value; }
inline void set_knob(Parameter<Duration>& parameter, double value) { parameter.value = from_seconds(value * 1e-6); }
inline void set_knob(Parameter<FlopsPerSecond>& parameter, double value) { parameter.value = {value * 1e12}; }

template <class Parameters>
std::vector<FitParameter> fit_parameters(std::span<const Knob<Parameters>> knobs) {
  std::vector<FitParameter> parameters;
  parameters.reserve(knobs.size());
  for (const Knob<Parameters>& knob : knobs) {
    parameters.push_back({.name = knob.name, .start = knob.start, .lower = knob.lower, .upper = knob.upper});
  }
  return parameters;
}

template <class Parameters>
void set_knobs(std::span<const Knob<Parameters>> knobs, std::span<const double> values, Parameters& parameters) {
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    std::visit([&](auto where) { set_knob(parameters.*where, values[i]); }, knobs[i].where);
  }
}

/// Sets values, standard errors and provenance. A parameter that is on its bound, changes no residual or has an error
/// above 1 is marked as undecided in its source and has no error.
template <class Parameters>
void set_fitted(std::span<const Knob<Parameters>> knobs, const RobustFit& fit, const std::string& source,
                Parameters& parameters) {
  set_knobs(knobs, fit.values(), parameters);
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    std::visit(
        [&](auto where) {
          auto& parameter = parameters.*where;
          const bool undecided = fit.parameters[i].undecided || fit.parameters[i].standard_error > 1.0;
          parameter.standard_error = undecided ? 0.0 : fit.parameters[i].standard_error;
          parameter.provenance = Provenance::fitted;
          parameter.source = source + (undecided ? " (undecided)" : "");
        },
        knobs[i].where);
  }
}

/// Returns lines of a hardware file, each indented by `indent` spaces.
template <class Parameters>
std::string knobs_yaml(std::span<const Knob<Parameters>> knobs, const Parameters& parameters, int indent) {
  std::string text;
  for (const Knob<Parameters>& knob : knobs) {
    std::visit([&](auto where) { text += parameter_line(knob.name, parameters.*where, indent); }, knob.where);
  }
  return text;
}

}  // namespace commfuse
