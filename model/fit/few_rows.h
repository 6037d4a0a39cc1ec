// SPDX-License-Identifier: Apache-2.0
// Fewer sizes than an ordinary fit of a kernel's formula asks for: the machine that the fit starts from is the prior
// (prior_fit.h), so that a profile with a handful of sizes moves what it knows about and nothing else. Decision 49 says
// where the numbers are from.
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

/// Relative standard deviation of a base's parameter that says no error, or a larger one: its own fit left it
/// undecided.
inline constexpr double unknown_error = 0.3;
/// Errors of formulas have longer tails than normal ones with the same p68, which is what FitScope::residual is.
inline constexpr double tails = 1.3;
/// Parameters whose prior the rows narrow by less than a tenth stay the base's.
inline constexpr double decided_by_few = 0.9;

/// One row off by a factor may not take a parameter where no row ever was: other sizes depend on it too.
inline constexpr double most_spreads_of_few = 2.0;

/// How far a machine may be from its base in every parameter alike, as standard deviations of logarithms.
inline std::vector<double> distances_from_base() { return {0.0, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3}; }

/// The rows of one such fit.
struct FewRows {
  std::size_t count = 0;
  std::function<double(std::size_t row)> log_ratio;  ///< Of predicted over measured, with the values put last.
  double residual = FitScope{}.residual;             ///< What the base's formula leaves, as FitScope::residual.
  std::string source;
};

/// Moves the parameters that the rows decide, each with its error and provenance; one that stopped at the limit of its
/// prior is as unsure as the prior, and says that it is undecided. The others stay to the last digit,
/// and are `left`, those that no row depends on too.
template <class Parameters>
PriorFit fit_few(std::span<const Knob<Parameters>> knobs, Parameters& parameters, const FewRows& rows) {
  std::vector<Knob<Parameters>> present;  // no share of 0 can be moved
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
  const auto put = [&](std::size_t place, double value) {
    std::visit([&](auto where) { set_knob(parameters.*where, value); }, present[place].where);
  };
  PriorFit fit = prior_fit(
      std::move(priors),
      {.count = rows.count, .put = put, .log_ratio = rows.log_ratio, .weight = [](std::size_t) { return 1.0; }},
      {.decided = decided_by_few,
       .noise = tails * std::max(rows.residual, residual_of_a_row),
       .most_spreads = most_spreads_of_few,
       .is_noise_known = true,
       .distances = distances_from_base(),
       .fit = {.most_iterations = 80, .tolerance = 1e-6, .difference_step = 1e-3}});
  parameters = base;
  fit.left.clear();
  for (std::size_t place = 0; place < present.size(); ++place) {
    if (std::find(fit.places.begin(), fit.places.end(), place) == fit.places.end()) {
      fit.left.emplace_back(present[place].name);
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

/// The many calls of a profile tell no more than the sizes they are of: a row a size, with the median of its times, in
/// the order of the keys.
template <class Row, class KeyOf>
std::vector<Row> one_a_size(std::span<const Row> rows, const KeyOf& key_of) {
  std::map<decltype(key_of(rows.front())), std::vector<Row>> sizes;
  for (const Row& row : rows) {
    sizes[key_of(row)].push_back(row);
  }
  std::vector<Row> medians;
  for (auto& [key, same] : sizes) {
    const auto middle = same.begin() + static_cast<std::ptrdiff_t>((same.size() - 1) / 2);
    std::nth_element(same.begin(), middle, same.end(), [](const Row& a, const Row& b) { return a.time < b.time; });
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

/// Knobs that a fit moved, by their names in a file.
template <class Parameters>
std::vector<Knob<Parameters>> knobs_in(std::span<const Knob<Parameters>> knobs,
                                       const std::vector<FittedParameter>& fitted) {
  std::vector<Knob<Parameters>> moved;
  for (const Knob<Parameters>& knob : knobs) {
    if (std::any_of(fitted.begin(), fitted.end(), [&](const auto& one) { return one.name == knob.name; })) {
      moved.push_back(knob);
    }
  }
  return moved;
}

}  // namespace commfuse
