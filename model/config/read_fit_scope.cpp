// SPDX-License-Identifier: Apache-2.0
#include "model/config/read_fit_scope.h"

#include <fmt/format.h>

#include <limits>

#include "model/text/quantity.h"

namespace commfuse {

namespace {

constexpr Range<double> residual_range{0.0, 1.0};
constexpr Range<double> limit_factor_range{0.0, 200.0};
constexpr Range<std::int64_t> size_range{0, std::numeric_limits<std::int64_t>::max()};

/// Returns true if the field is a number, so that reading it noted no mistake.
bool is_count(YamlMap map, std::string_view key) {
  const std::optional<YamlValue> value = map.optional_value(key);
  return value && value->kind() == YamlKind::scalar && parse_count(value->text()).has_value();
}

SeenRange read_seen(YamlMap map) {
  const SeenRange seen{.least = map.count("least", size_range), .most = map.count("most", size_range)};
  if (seen.least > seen.most && is_count(map, "most")) {
    map.mistake("least", fmt::format("least, {}, is above most, {}; set least to the smallest measured size",
                                     seen.least, seen.most));
  }
  return seen;
}

/// Reads the factors; an omitted limit has factor 1.
ByLimit read_by_limit(YamlMap map) {
  ByLimit factors = ones_by_limit;
  for (const Limit limit : all_limits) {
    if (map.optional_value(name_of(limit))) {
      factors[static_cast<std::size_t>(limit)] = map.number(name_of(limit), limit_factor_range);
    }
  }
  return factors;
}

}  // namespace

FitScope read_fit_scope(YamlMap parent) {
  FitScope scope;
  std::optional<YamlMap> fit = parent.optional_map("fit");
  if (!fit) {
    return scope;
  }
  scope.residual = fit->number("residual", residual_range);
  if (std::optional<YamlMap> by_limit = fit->optional_map("by_limit")) {
    scope.by_limit = read_by_limit(*by_limit);
  }
  if (std::optional<YamlMap> seen = fit->optional_map("seen")) {
    for (const FitSize size : all_fit_sizes) {
      if (std::optional<YamlMap> range = seen->optional_map(name_of(size))) {
        scope.seen[static_cast<std::size_t>(size)] = read_seen(*range);
      }
    }
  }
  return scope;
}

}  // namespace commfuse
