// SPDX-License-Identifier: Apache-2.0
// What a fit leaves and saw, as a hardware file has it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/fit/fit_quality.h"
#include "model/hardware/fit_scope.h"

namespace commfuse {

/// Widens the range of a size so that it holds the value.
void widen(FitScope& scope, FitSize size, std::int64_t value);

/// What the rows that were held back say is left, those of the fit where none were: two thirds are off by no more.
double residual_of(const FitQuality& fitted, const FitQuality& held_back);

/// The residual to write for a fit to few rows, which lie nearer to it than others do: at least what the base's formula
/// leaves, and beside it half of how far the machine seems from the base (prior_fit.h), as what few rows do not decide
/// stays there.
double residual_of_few(double of_rows, const FitScope& base, double distance);

/// `{latency: 0.7, bandwidth: 1, few_tiles: 1.4, compute: 1.1}`.
std::string by_limit_yaml(const ByLimit& by_limit);

/// `fit: {residual: 0.047, seen: {m: {least: 1, most: 32768}}}` behind `indent` spaces, a line a size. Ends with a line
/// break. `by_limit` is written where the file it extends, whose factors are `of_base`, has others: those would hold.
std::string fit_scope_yaml(const FitScope& scope, int indent, const ByLimit& of_base = alike_by_limit);

}  // namespace commfuse
