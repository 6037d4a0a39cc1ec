// SPDX-License-Identifier: Apache-2.0
// Residual and measured range of a fit, as lines of a hardware file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/fit/fit_quality.h"
#include "model/hardware/fit_scope.h"

namespace commfuse {

/// Widens the range of a size to include the value.
void widen(FitScope& scope, FitSize size, std::int64_t value);

/// Returns the residual, at most 1: the p68 of the held-out rows, or of the fitted rows if none were held out.
double residual_of(const FitQuality& fitted, const FitQuality& held_out);

/// Returns the residual to write for a fit to few rows, which are closer to the fit than other rows: at least the
/// residual of the base's formula, combined with half of the machine's distance from the base (prior_fit.h), because
/// parameters that few rows cannot determine stay at the base's values.
double residual_of_few(double of_rows, const FitScope& base, double distance);

/// Returns `{latency: 0.7, bandwidth: 1, few_tiles: 1.4, compute: 1.1}`.
std::string by_limit_yaml(const ByLimit& by_limit);

/// Returns `fit: {residual: 0.047, seen: {m: {least: 1, most: 32768}}}` indented by `indent` spaces, with one line per
/// size. Ends with a line break. `by_limit` is written only if it differs from `of_base`, the factors of the extended
/// file, which would apply otherwise.
std::string fit_scope_yaml(const FitScope& scope, int indent, const ByLimit& of_base = ones_by_limit);

}  // namespace commfuse
