// SPDX-License-Identifier: Apache-2.0
#include "model/text/ranges.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_set>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

std::int32_t number(std::string_view text, const WholeNumbers& allowed) {
  const std::optional<std::int64_t> value = parse_integer(text);
  if (!value) {
    throw ConfigError(
        fmt::format("{}: {} is not a whole number from {} to {}; write a number, a list or a range, such as 4, 1..8 or "
                    "2,4,8",
                    allowed.flag, in_quotes(text), allowed.lowest, allowed.highest));
  }
  if (*value < allowed.lowest || *value > allowed.highest) {
    throw ConfigError(fmt::format("{}: {} is out of range; write whole numbers from {} to {}", allowed.flag, *value,
                                  allowed.lowest, allowed.highest));
  }
  return static_cast<std::int32_t>(*value);
}

}  // namespace

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  for (std::size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', start)) {
    parts.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::vector<std::int32_t> parse_whole_numbers(std::string_view text, const WholeNumbers& allowed) {
  std::vector<std::int32_t> numbers;
  std::unordered_set<std::int32_t> known;
  for (const std::string_view part : split_list(text)) {
    const std::size_t dots = part.find("..");
    const std::int32_t first = number(part.substr(0, dots), allowed);
    const std::int32_t last = dots == std::string_view::npos ? first : number(part.substr(dots + 2), allowed);
    if (last < first) {
      throw ConfigError(fmt::format("{}: {} is descending; write {}..{}", allowed.flag, in_quotes(part), last, first));
    }
    for (std::int32_t value = first; value <= last; ++value) {
      if (known.insert(value).second) {
        numbers.push_back(value);
      }
    }
  }
  return numbers;
}

}  // namespace commfuse
