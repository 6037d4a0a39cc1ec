// SPDX-License-Identifier: Apache-2.0
#include "model/text/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace commfuse {

namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr double kibi = 1024.0;
constexpr double mebi = kibi * kibi;
constexpr double gibi = mebi * kibi;
constexpr double tebi = gibi * kibi;

constexpr std::array<Unit, 5> time_units{{{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}}};
constexpr std::array<Unit, 13> size_units{{{"B", 1.0},
                                           {"KiB", kibi},
                                           {"MiB", mebi},
                                           {"GiB", gibi},
                                           {"TiB", tebi},
                                           {"K", kibi},
                                           {"M", mebi},
                                           {"G", gibi},
                                           {"T", tebi},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12}}};
constexpr std::array<Unit, 10> bandwidth_units{{{"B/s", 1.0},
                                                {"kB/s", 1e3},
                                                {"MB/s", 1e6},
                                                {"GB/s", 1e9},
                                                {"TB/s", 1e12},
                                                {"KiB/s", kibi},
                                                {"MiB/s", mebi},
                                                {"GiB/s", gibi},
                                                {"Mbit/s", 1e6 / 8},
                                                {"Gbit/s", 1e9 / 8}}};
constexpr std::array<Unit, 5> compute_units{
    {{"FLOP/s", 1.0}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};
constexpr std::array<Unit, 3> power_units{{{"W", 1.0}, {"kW", 1e3}, {"MW", 1e6}}};
constexpr std::array<Unit, 7> span_units{
    {{"ms", 1e-3}, {"s", 1.0}, {"min", 60.0}, {"h", 3600.0}, {"days", 86400.0}, {"day", 86400.0}, {"d", 86400.0}}};
constexpr std::array<Unit, 4> count_units{{{"", 1.0}, {"K", kibi}, {"M", mebi}, {"G", gibi}}};

constexpr double longest_seconds = 9.2e6;             // range of Duration
constexpr double largest_whole = 9007199254740992.0;  // 2^53: whole numbers up to here are exact in a double.

bool digit(char c) { return c >= '0' && c <= '9'; }

/// Reads the unsigned decimal number at the front and removes it from `text`.
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || !digit(text[0]) || (text.size() > 1 && text[0] == '0' && digit(text[1]))) {
    return std::nullopt;
  }
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<double> parse_scaled(std::string_view text, std::span<const Unit> units) {
  const std::optional<double> number = take_number(text);
  if (!number) {
    return std::nullopt;
  }
  if (!text.empty() && text[0] == ' ') {
    text.remove_prefix(1);
  }
  for (const Unit& unit : units) {
    if (text == unit.name) {
      const double value = *number * unit.scale;
      return std::isfinite(value) ? std::optional(value) : std::nullopt;
    }
  }
  return std::nullopt;
}

/// Returns the value if it is whole up to the rounding of a double: 4.1 x 1e6 is 4099999.9999999995.
std::optional<std::int64_t> whole(std::optional<double> value) {
  const double nearest = std::round(value.value_or(0.0));
  const double rounding = nearest * std::numeric_limits<double>::epsilon();
  if (!value || std::abs(*value - nearest) > rounding || nearest > largest_whole) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(nearest);
}

/// Formats the value in the largest of `units` (smallest first) that leaves at least 1, with the fewest digits whose
/// text is the same as the value.
std::string format_scaled(double value, std::span<const Unit> units, bool (*same)(double, std::string_view)) {
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (value >= units[i].scale) {
      chosen = i;
    }
  }
  for (int digits = 1; digits <= 17; ++digits) {
    const double scaled = value / units[chosen].scale;
    std::string text = fmt::format("{:.{}g}", scaled, digits);
    if (text.find('e') == std::string::npos) {
      text += fmt::format(" {}", units[chosen].name);
      if (same(value, text)) {
        return text;
      }
    }
  }
  return fmt::format("{} {}", value / units[0].scale, units[0].name);
}

}  // namespace

bool is_too_long(std::string_view time) {
  const std::optional<double> seconds = parse_scaled(time, time_units);
  return seconds && *seconds >= longest_seconds;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const std::optional<double> seconds = parse_scaled(text, time_units);
  if (!seconds || *seconds >= longest_seconds) {
    return std::nullopt;
  }
  return from_seconds(*seconds);
}

std::optional<Bytes> parse_size(std::string_view text) {
  const std::optional<std::int64_t> count = whole(parse_scaled(text, size_units));
  return count ? std::optional(Bytes{*count}) : std::nullopt;
}

std::optional<BytesPerSecond> parse_bandwidth(std::string_view text) {
  const std::optional<double> rate = parse_scaled(text, bandwidth_units);
  return rate ? std::optional(BytesPerSecond{*rate}) : std::nullopt;
}

std::optional<FlopsPerSecond> parse_compute_rate(std::string_view text) {
  const std::optional<double> rate = parse_scaled(text, compute_units);
  return rate ? std::optional(FlopsPerSecond{*rate}) : std::nullopt;
}

std::optional<Watts> parse_power(std::string_view text) {
  const std::optional<double> power = parse_scaled(text, power_units);
  return power ? std::optional(Watts{*power}) : std::nullopt;
}

std::optional<Seconds> parse_span(std::string_view text) {
  const std::optional<double> seconds = parse_scaled(text, span_units);
  return seconds ? std::optional(Seconds{*seconds}) : std::nullopt;
}

std::optional<std::chrono::sys_days> parse_date(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd";
  const auto fits = [](char wanted, char c) { return wanted == 'd' ? digit(c) : c == wanted; };
  if (text.size() != form.size() || !std::equal(form.begin(), form.end(), text.begin(), fits)) {
    return std::nullopt;
  }
  const auto number = [&](std::size_t from, std::size_t count) {
    int value = 0;
    std::from_chars(text.data() + from, text.data() + from + count, value);
    return value;
  };
  const std::chrono::year_month_day date{std::chrono::year{number(0, 4)},
                                         std::chrono::month{static_cast<unsigned>(number(5, 2))},
                                         std::chrono::day{static_cast<unsigned>(number(8, 2))}};
  return date.ok() ? std::optional(std::chrono::sys_days{date}) : std::nullopt;
}

std::optional<double> parse_amount(std::string_view text) {
  struct Unit {
    char letter;
    double factor;
  };
  constexpr std::array units{Unit{'K', 1e3}, Unit{'M', 1e6}, Unit{'B', 1e9}, Unit{'G', 1e9}, Unit{'T', 1e12},
                             Unit{'k', 1e3}, Unit{'m', 1e6}, Unit{'b', 1e9}, Unit{'g', 1e9}, Unit{'t', 1e12}};
  text.remove_prefix(text.starts_with('$') ? 1 : 0);
  const auto* const unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& candidate) { return text.ends_with(candidate.letter); });
  text.remove_suffix(unit != units.end() ? 1 : 0);
  const std::optional<double> number = parse_number(text);
  return number && unit != units.end() ? std::optional(*number * unit->factor) : number;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  if (text.find_first_not_of("0123456789.KMG") != std::string_view::npos) {
    return std::nullopt;
  }
  return whole(parse_scaled(text, count_units));
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return whole(parse_scaled(text, std::span(count_units).first(1)));
}

std::optional<double> parse_number(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) {
    text.remove_prefix(1);
  }
  const std::optional<double> value = take_number(text);
  if (!value || !text.empty()) {
    return std::nullopt;
  }
  return negative ? -*value : *value;
}

std::optional<double> parse_share(std::string_view text) {
  const bool is_percent = text.ends_with('%');
  if (is_percent) {
    text.remove_suffix(1);
    text = text.substr(0, text.find_last_not_of(' ') + 1);
  }
  const std::optional<double> number = parse_number(text);
  return number && is_percent ? std::optional(*number / 100.0) : number;
}

std::string format_duration(Duration duration) {
  const std::int64_t count = duration.count();
  std::size_t chosen = 0;
  std::int64_t scale = 1;
  for (std::int64_t next = 1000; chosen + 1 < time_units.size() && count >= next; next *= 1000) {
    scale = next;
    ++chosen;
  }
  std::string text = fmt::format("{}", count / scale);
  if (count % scale != 0) {
    std::string fraction = fmt::format("{:0{}}", count % scale, 3 * chosen);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += "." + fraction;
  }
  return fmt::format("{} {}", text, time_units[chosen].name);
}

std::string format_size(Bytes size) {
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    const auto scale = static_cast<std::int64_t>(size_units[i].scale);
    if (size.count >= scale && size.count % scale == 0) {
      chosen = i;
    }
  }
  return fmt::format("{} {}", size.count / static_cast<std::int64_t>(size_units[chosen].scale),
                     size_units[chosen].name);
}

std::string format_bandwidth(BytesPerSecond rate) {
  return format_scaled(rate.value, std::span(bandwidth_units).first(5), [](double value, std::string_view text) {
    return parse_bandwidth(text) == BytesPerSecond{value};
  });
}

std::string bandwidth_in_words(BytesPerSecond rate) {
  return format_scaled(rate.value, std::span(bandwidth_units).first(5), [](double value, std::string_view text) {
    constexpr double rounding = 1e-6;
    const std::optional<BytesPerSecond> read = parse_bandwidth(text);
    return read && std::abs(read->value - value) <= rounding * value;
  });
}

std::string format_count(std::int64_t count) {
  for (std::size_t i = count_units.size() - 1; i > 0; --i) {
    const auto scale = static_cast<std::int64_t>(count_units[i].scale);
    if (count >= scale && count % scale == 0) {
      return fmt::format("{}{}", count / scale, count_units[i].name);
    }
  }
  return fmt::format("{}", count);
}

}  // namespace commfuse
