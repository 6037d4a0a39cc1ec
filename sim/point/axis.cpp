// SPDX-License-Identifier: Apache-2.0
#include "sim/point/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "model/config/bandwidth_choice.h"
#include "model/config/meant.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr std::size_t max_values = 10'000;
constexpr std::string_view how_to_write = "write a list or a range, as in 2,4,8 or 1K..128K or 4K..16K+4K";

/// A range first..last that steps by addition or multiplication.
struct NumberRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
  bool multiplies = false;
};

[[noreturn]] void refuse(std::string_view range, std::string_view why) {
  throw ConfigError(fmt::format("{} {}", in_quotes(range), why));
}

/// Reads a number of a range as the setting reads its value: 8k is 8K.
std::int64_t number(const Field& field, std::string_view range, std::string_view text) {
  const std::optional<std::int64_t> value = parse_count(meant(field, text));
  if (!value) {
    refuse(range, fmt::format("is not a range; {}", how_to_write));
  }
  return *value;
}

NumberRange parse_range(const Field& field, std::string_view text, std::size_t dots) {
  NumberRange range;
  range.first = number(field, text, text.substr(0, dots));
  const std::string_view after_dots = text.substr(dots + 2);
  const std::size_t sign = after_dots.find_first_of("+*");
  range.last = number(field, text, after_dots.substr(0, sign));
  range.multiplies = sign == std::string_view::npos ? field.growth == Growth::doubles : after_dots[sign] == '*';
  range.step =
      sign == std::string_view::npos ? (range.multiplies ? 2 : 1) : number(field, text, after_dots.substr(sign + 1));
  const int min_step = range.multiplies ? 2 : 1;
  if (range.step < min_step) {
    refuse(text, fmt::format("never ends; {} at least {}", range.multiplies ? "multiply by" : "add", min_step));
  }
  if (range.multiplies && range.first < 1) {
    refuse(text, "never ends; begin at 1 or more");
  }
  if (range.last < range.first) {
    refuse(text, fmt::format("is descending; write {}..{}", format_count(range.last), format_count(range.first)));
  }
  return range;
}

std::vector<std::string> expand(std::string_view text, const NumberRange& range) {
  std::vector<std::string> values;
  for (std::int64_t value = range.first; value <= range.last;
       value = range.multiplies ? value * range.step : value + range.step) {
    if (values.size() == max_values) {
      refuse(text, fmt::format("has more than {} values; take larger steps", max_values));
    }
    values.push_back(format_count(value));
    if (range.multiplies && value > range.last / range.step) {
      break;
    }
  }
  return values;
}

/// Expands `x0.25..x4`, which doubles, or `x1..x100*10`, which multiplies by 10.
std::vector<std::string> bandwidths(std::string_view text, std::size_t dots) {
  const std::string_view after_dots = text.substr(dots + 2);
  const std::size_t sign = after_dots.find('*');
  const std::optional<BandwidthChoice> first = parse_bandwidth_choice(text.substr(0, dots));
  const std::optional<BandwidthChoice> last = parse_bandwidth_choice(after_dots.substr(0, sign));
  const std::optional<double> times =
      sign == std::string_view::npos ? std::optional(2.0) : parse_number(after_dots.substr(sign + 1));
  constexpr double min_times = 1.01;
  if (!first || !last || !times || *times < min_times || first->times.has_value() != last->times.has_value()) {
    refuse(text, "is not a range; write two factors or two rates, as in x0.25..x4, which doubles, or x1..x100*10");
  }
  std::vector<std::string> values;
  for (const BandwidthChoice& value : bandwidth_range(*first, *last, *times)) {
    values.push_back(format_bandwidth_choice(value));
  }
  if (values.size() > max_values) {
    refuse(text, fmt::format("has more than {} values; take larger steps", max_values));
  }
  if (values.empty()) {
    refuse(text,
           fmt::format("is descending; write {}..{}", format_bandwidth_choice(*last), format_bandwidth_choice(*first)));
  }
  return values;
}

std::string in_message(std::string_view text) {
  const std::string quoted = in_quotes(text);
  return fmt::format("--axis {}", std::string_view(quoted).substr(1, quoted.size() - 2));
}

/// Reads the list of values of the setting `key`; `where` is the origin of the axis.
GridAxis parse_parts(std::string_view key, std::string_view values, const std::string& where) {
  const Field* const meant_field = field_meant(key);
  const Field& field = axis_field(meant_field == nullptr ? key : meant_field->key);
  GridAxis axis{.fields = {&field}, .steps = {}, .origin = {Source::flag, where}};
  for (const std::string_view part : split_list(values)) {
    for (const std::string& typed : axis_values(field, part)) {
      const std::string value = meant(field, typed);
      if (const std::optional<std::string> mistake = mistake_in(field, value)) {
        throw ConfigError(*mistake);
      }
      axis.steps.push_back({Setting{value, axis.origin}});
    }
  }
  if (const std::string repeated = repeated_step(axis); !repeated.empty()) {
    throw ConfigError(fmt::format("{} is given twice; keep one of them", in_quotes(repeated)));
  }
  return axis;
}

/// Returns the value in the spelling that all equal values share.
std::string in_one_spelling(const Field& field, const std::string& text) {
  if (field.type == FieldType::count) {
    return format_count(parse_count(text).value_or(0));
  }
  if (field.type == FieldType::bandwidth) {
    const BandwidthChoice choice = parse_bandwidth_choice(text).value_or(BandwidthChoice{});
    return choice.rate ? fmt::format("{}", choice.rate->value) : fmt::format("x{}", choice.times.value_or(1.0));
  }
  return text;
}

}  // namespace

std::string repeated_step(const GridAxis& axis) {
  std::set<std::vector<std::string>> known;
  for (const std::vector<Setting>& step : axis.steps) {
    std::vector<std::string> values;
    std::vector<std::string> texts;
    for (std::size_t f = 0; f < axis.fields.size(); ++f) {
      values.push_back(in_one_spelling(*axis.fields[f], step[f].text));
      texts.push_back(step[f].text);
    }
    if (!known.insert(std::move(values)).second) {
      return fmt::format("{}", fmt::join(texts, ", "));
    }
  }
  return {};
}

std::vector<std::string> axis_values(const Field& field, std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots != std::string_view::npos && field.type == FieldType::bandwidth) {
    return bandwidths(text, dots);
  }
  if (field.type != FieldType::count || dots == std::string_view::npos) {
    return {std::string(text)};
  }
  return expand(text, parse_range(field, text, dots));
}

const Field& axis_field(std::string_view key) {
  const Field* field = find_field(key);
  if (field == nullptr) {
    throw ConfigError(is_group(key) ? fmt::format("'{0}' is a group of settings; name one, as in {0}.name", key)
                                    : fmt::format("unknown setting {}; {}", in_quotes(key), remedy_for_key(key)));
  }
  if (!field->of_point) {
    throw ConfigError(fmt::format("'{}' does not change results; give it once, as --{}", key, field->flag));
  }
  return *field;
}

GridAxis parse_axis(std::string_view text) {
  const std::string where = in_message(text);
  const std::size_t equals = text.find('=');
  try {
    if (equals == std::string_view::npos) {
      throw ConfigError("'=' is missing; write a setting and its values, as in ranks=2,4,8 or seq=1K..128K");
    }
    return parse_parts(text.substr(0, equals), text.substr(equals + 1), where);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", where, error.what()));
  }
}

}  // namespace commfuse
