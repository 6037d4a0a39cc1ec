// SPDX-License-Identifier: Apache-2.0
#include "model/fit/fit_scope_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/fit/quadrature.h"

namespace commfuse {

void widen(FitScope& scope, FitSize size, std::int64_t value) {
  std::optional<SeenRange>& range = scope.seen[static_cast<std::size_t>(size)];
  range = range ? SeenRange{std::min(range->least, value), std::max(range->most, value)} : SeenRange{value, value};
}

double residual_of(const FitQuality& fitted, const FitQuality& held_out) {
  return std::min(1.0, held_out.rows > 0 ? held_out.p68 : fitted.p68);
}

double residual_of_few(double of_rows, const FitScope& base, double distance) {
  return std::min(1.0, in_quadrature(std::max(of_rows, base.residual), 0.5 * distance));
}

std::string by_limit_yaml(const ByLimit& by_limit) {
  std::string text;
  for (const Limit limit : all_limits) {
    text += fmt::format("{}{}: {:.4g}", text.empty() ? "" : ", ", name_of(limit),
                        by_limit[static_cast<std::size_t>(limit)]);
  }
  return "{" + text + "}";
}

std::string fit_scope_yaml(const FitScope& scope, int indent, const ByLimit& of_base) {
  std::string text = fmt::format("{0:{1}}fit:\n{0:{1}}  residual: {2:.4f}\n", "", indent, scope.residual);
  if (scope.by_limit != of_base) {
    text += fmt::format("{:{}}  by_limit: {}\n", "", indent, by_limit_yaml(scope.by_limit));
  }
  std::string sizes;
  for (const FitSize size : all_fit_sizes) {
    if (const std::optional<SeenRange>& range = scope.range(size)) {
      sizes +=
          fmt::format("{:{}}    {}: {{least: {}, most: {}}}\n", "", indent, name_of(size), range->least, range->most);
    }
  }
  return text + (sizes.empty() ? "" : fmt::format("{:{}}  seen:\n{}", "", indent, sizes));
}

}  // namespace commfuse
