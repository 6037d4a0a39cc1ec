// SPDX-License-Identifier: Apache-2.0
// A law: a change of a setting, and a relation that must hold between the two results. laws.cpp lists all laws.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tests/laws/draws.h"
#include "tests/laws/outcome.h"
#include "tests/laws/setting.h"

namespace commfuse::laws {

struct Law {
  std::string_view name;
  std::string_view sentence;
  /// Returns the setting to compare with; nothing if the law does not apply to this one. The pointer is null if the law
  /// checks a single result.
  std::optional<Setting> (*changed)(const Setting&, Draws&);
  /// Returns the result in units of what the law allows: at most 1 if the law holds. Nothing if the law does not apply
  /// to these results.
  std::optional<double> (*factor)(const Outcome& before, const Outcome& after);
};

std::span<const Law> all_laws();
/// Returns null if there is no law of that name.
const Law* find_law(std::string_view name);

/// Rates that change at run time are shared in steps, so times of the engine may then differ by 1%.
inline constexpr double engine_tolerance = 1.01;
/// Results of whole models are milliseconds in doubles.
inline constexpr double rounding_tolerance = 1.0 + 1e-12;

double tolerance_of(const Outcome& before, const Outcome& after);

// Laws by subject: each is a part of all_laws().
std::span<const Law> laws_of_resources();
std::span<const Law> laws_of_work();
std::span<const Law> laws_of_bounds();
std::span<const Law> laws_of_sums();
std::span<const Law> laws_of_costs();

// Relations that most laws demand of two results, as factors.

/// Returns the factor of a measure that must not grow.
template <double (*measure)(const Outcome&)>
std::optional<double> must_not_grow(const Outcome& before, const Outcome& after) {
  const double first = measure(before);
  const double second = measure(after);
  return second <= first ? 1.0 : first > 0.0 ? second / first / tolerance_of(before, after) : 1e9;
}

template <double (*measure)(const Outcome&)>
std::optional<double> must_not_shrink(const Outcome& before, const Outcome& after) {
  return must_not_grow<measure>(after, before);
}

// Under dynamic interference ops share rates with the ops that they happen to meet. An op that ends earlier may then
// meet a transfer that it missed before, and an op that waits for that transfer ends later: a timing anomaly like
// Graham's ("Bounds on multiprocessing timing anomalies", SIAM Journal on Applied Mathematics 17, 1969), which real
// machines show too. So "shorter ops never make a run longer" is not a law there. The laws of faster links still apply,
// with a tolerance of 1%.

/// Returns the factor of a measure that must not grow; nothing under dynamic interference.
template <double (*measure)(const Outcome&)>
std::optional<double> must_not_grow_at_fixed_rates(const Outcome& before, const Outcome& after) {
  return before.meets_others || after.meets_others ? std::nullopt : must_not_grow<measure>(before, after);
}

template <double (*measure)(const Outcome&)>
std::optional<double> must_not_shrink_at_fixed_rates(const Outcome& before, const Outcome& after) {
  return must_not_grow_at_fixed_rates<measure>(after, before);
}

template <double (*measure)(const Outcome&)>
std::optional<double> must_stay(const Outcome& before, const Outcome& after) {
  return std::max(*must_not_grow<measure>(before, after), *must_not_grow<measure>(after, before));
}

double time_of(const Outcome& outcome);
double memory_of(const Outcome& outcome);

}  // namespace commfuse::laws
