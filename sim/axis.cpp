// SPDX-License-Identifier: Apache-2.0
#include "sim/axis.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "model/config/quantity.h"
#include "model/config/suggest.h"
#include "model/config_error.h"

namespace commfuse {

namespace {

constexpr std::size_t most_values = 10'000;

/// first..last, stepping by addition or multiplication.
struct NumberRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
  bool multiplies = false;
};

[[noreturn]] void refuse(std::string_view axis, std::string_view why) {
  throw ConfigError(
      fmt::format("--axis {}: {}; write a list or a range, as in ranks=2,4,8 or seq=1K..128K or seq=4K..16K+4K",
                  in_quotes(axis), why));
}

std::int64_t number(std::string_view axis, std::string_view text) {
  const std::optional<std::int64_t> value = parse_count(text);
  if (!value || *value < 1) {
    refuse(axis, fmt::format("{} is not a whole number of at least 1", in_quotes(text)));
  }
  return *value;
}

NumberRange parse_range(std::string_view axis, std::string_view key, std::string_view text, std::size_t dots) {
  NumberRange range;
  range.first = number(axis, text.substr(0, dots));
  const std::string_view rest = text.substr(dots + 2);
  const std::size_t sign = rest.find_first_of("+*");
  range.last = number(axis, rest.substr(0, sign));
  if (sign != std::string_view::npos) {
    range.multiplies = rest[sign] == '*';
    range.step = number(axis, rest.substr(sign + 1));
  } else {
    range.multiplies = key != "ranks";  // sequence lengths and batches double
    range.step = range.multiplies ? 2 : 1;
  }
  if (range.multiplies && range.step < 2) {
    refuse(axis, "a factor is at least 2");
  }
  if (range.last < range.first) {
    refuse(axis, fmt::format("{} is below {}", range.last, range.first));
  }
  return range;
}

std::vector<std::string> expand(std::string_view axis, const NumberRange& range) {
  std::vector<std::string> values;
  for (std::int64_t value = range.first; value <= range.last;
       value = range.multiplies ? value * range.step : value + range.step) {
    if (values.size() == most_values) {
      refuse(axis, fmt::format("it has more than {} values", most_values));
    }
    values.push_back(std::to_string(value));
    if (range.multiplies && value > range.last / range.step) {
      break;
    }
  }
  return values;
}

std::vector<std::string> split(std::string_view axis, std::string_view text) {
  std::vector<std::string> values;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    if (comma == start) {
      refuse(axis, "a value is missing");
    }
    values.emplace_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return values;
}

}  // namespace

GridAxis parse_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    refuse(text, "it has no '='");
  }
  GridAxis axis{.key = std::string{text.substr(0, equals)}, .values = {}};
  const std::string_view values = text.substr(equals + 1);
  const std::size_t dots = values.find("..");
  // Only numbers have ranges; ".." inside a path of a model is a path.
  const bool is_range = dots != std::string_view::npos && values.find_first_of("/,") == std::string_view::npos;
  axis.values = is_range ? expand(text, parse_range(text, axis.key, values, dots)) : split(text, values);
  return axis;
}

}  // namespace commfuse
