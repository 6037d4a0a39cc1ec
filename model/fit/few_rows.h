// SPDX-License-Identifier: Apache-2.0
// Fits to fewer sizes than an ordinary fit of a kernel's formula needs. The base (the machine from which the fit
// starts) is the prior (prior_fit.h), so that a profile with a handful of sizes moves only the parameters that it
// determines. Decision 49 states the origin of the constants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/fit/knobs.h"
#include "model/fit/prior_fit.h"
#include "model/hardware/fit_scope.h"
#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// Relative standard deviation of a parameter around its value in the base if the base states no error or a larger one,
/// as for parameters that its own fit left undecided.
inline constexpr double unknown_error = 0.3;
/// Factor that turns FitScope::residual, a p68, into a standard deviation: errors of formulas have longer tails than
/// normal errors.
inline constexpr double tails = 1.3;
/// Parameters whose prior the rows narrow by less than a tenth keep the base's value.
inline constexpr double decided_by_few = 0.9;

/// Limit on the distance from the start, in spreads: one row that is off by a large factor must not move a parameter to
/// an implausible value, because other sizes also depend on that parameter.
inline constexpr double max_spreads_of_few = 2.0;

/// Returns the possible distances of a machine from its base, common to all parameters, as standard deviations of
/// logarithms.
inline std::vector<double> distances_from_base() { return {0.0, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3}; }

/// Rows of a fit to few sizes.
struct FewRows {
  std::size_t count = 0;
  std::function<double(std::size_t row)> log_ratio;  ///< ln(predicted / measured) with the latest values
  double residual = FitScope{}.residual;             ///< residual of the base's formula, as FitScope::residual
  std::string source;
};

/// Moves the parameters that the rows determine, and sets the error and provenance of each. A parameter that stopped at
/// the limit of its prior keeps the prior's error and is marked as undecided. All other parameters stay unchanged to
/// the last digit and are listed in `left`, including parameters on which no row depends; only parameters of value 0
/// are not listed.
template <class Parameters>
PriorFit fit_few(std::span<const Knob<Parameters>> knobs, Parameters& parameters, const FewRows& rows) {
  std::vector<Knob<Parameters>> present;  // a value of 0 has no logarithm to move
  std::vector<PriorParameter> priors;
  for (const Knob<Parameters>& knob : knobs) {
    const auto [start, error] = std::visit(
        [&](auto where) { return std::pair(knob_number(parameters.*where), (parameters.*where).standard_error); },
        knob.where);
    if (start > 0.0) {
      present.push_back(knob);
      priors.push_back({.name = knob.name,
                        .start = start,
                        .lower = std::min(knob.lower, start),
                        .upper = std::max(knob.upper, start),
                        .spread = error > 0.0 ? std::min(error, unknown_error) : unknown_error});
    }
  }
  const Parameters base = parameters;
  const auto put = [&](std::size_t index, double value) {
    std::visit([&](auto where) { set_knob(parameters.*where, value); }, present[index].where);
  };
  PriorFit fit = prior_fit(
      std::move(priors),
      {.count = rows.count, .put = put, .log_ratio = rows.log_ratio, .weight = [](std::size_t) { return 1.0; }},
      {.decided = decided_by_few,
       .noise = tails * std::max(rows.residual, residual_of_a_row),
       .max_spreads = max_spreads_of_few,
       .is_noise_known = true,
       .distances = distances_from_base(),
       .fit = {.max_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3}});
  parameters = base;
  fit.left.clear();
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (std::find(fit.places.begin(), fit.places.end(), i) == fit.places.end()) {
      fit.left.emplace_back(present[i].name);
    }
  }
  for (std::size_t i = 0; i < fit.places.size(); ++i) {
    put(fit.places[i], fit.parameters[i].value);
    std::visit(
        [&](auto where) {
          auto& parameter = parameters.*where;
          parameter.standard_error = fit.parameters[i].standard_error;
          parameter.provenance = Provenance::fitted;
          parameter.source = rows.source + (fit.parameters[i].undecided ? " (undecided)" : "");
        },
        present[fit.places[i]].where);
  }
  return fit;
}

/// Returns one row per size, with the median of its times, because repeated calls of one size add no information. The
/// rows are in the order of the keys.
template <class Row, class KeyOf>
std::vector<Row> one_per_size(std::span<const Row> rows, const KeyOf& key_of) {
  std::map<decltype(key_of(rows.front())), std::vector<Row>> sizes;
  for (const Row& row : rows) {
    sizes[key_of(row)].push_back(row);
  }
  std::vector<Row> medians;
  for (auto& [key, rows_of_size] : sizes) {
    const auto middle = rows_of_size.begin() + static_cast<std::ptrdiff_t>((rows_of_size.size() - 1) / 2);
    std::nth_element(rows_of_size.begin(), middle, rows_of_size.end(),
                     [](const Row& a, const Row& b) { return a.time < b.time; });
    medians.push_back(*middle);
  }
  return medians;
}

template <class Row, class KeyOf>
std::size_t count_sizes(std::span<const Row> rows, const KeyOf& key_of) {
  std::set<decltype(key_of(rows.front()))> sizes;
  for (const Row& row : rows) {
    sizes.insert(key_of(row));
  }
  return sizes.size();
}

/// Returns the knobs that a fit moved; they are matched by their names in a file.
template <class Parameters>
std::vector<Knob<Parameters>> knobs_in(std::span<const Knob<Parameters>> knobs,
                                       const std::vector<FittedParameter>& fitted) {
  std::vector<Knob<Parameters>> moved;
  for (const Knob<Parameters>& knob : knobs) {
    if (std::any_of(fitted.begin(), fitted.end(), [&](const auto& parameter) { return parameter.name == knob.name; })) {
      moved.push_back(knob);
    }
  }
  return moved;
}

}  // namespace commfuse
