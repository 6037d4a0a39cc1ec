// SPDX-License-Identifier: Apache-2.0
// Numbers with units as people write them. Sizes follow nccl-tests: K, M, G and T without a B are binary; kB, MB, GB
// and TB are decimal. Rates are decimal unless written as KiB/s and so on. A space before the unit is optional.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/units.h"

namespace commfuse {

// Each function returns nullopt for text that is not such a quantity: a missing or unknown unit, a sign, a leading zero
// as in `010`, or a value out of range. Only parse_number(), parse_amount() and parse_share() accept a minus sign.

/// Parses "5 us" or "2.5ms"; units ps, ns, us, ms, s. Rounds to the nearest picosecond; the limit is 9.2e6 s.
std::optional<Duration> parse_duration(std::string_view text);
/// Returns true if the text is a time in one of those units, but exceeds the limit.
bool is_too_long(std::string_view time);
/// Parses "32 KiB", "128M", "80 GB" or "512 B"; whole bytes only.
std::optional<Bytes> parse_size(std::string_view text);
/// Parses "450 GB/s", "56 GiB/s" or "400 Gbit/s".
std::optional<BytesPerSecond> parse_bandwidth(std::string_view text);
/// Parses "989 TFLOP/s"; prefixes M, G, T, P.
std::optional<FlopsPerSecond> parse_compute_rate(std::string_view text);
/// Parses "700 W", "1.3 kW" or "20 MW".
std::optional<Watts> parse_power(std::string_view text);
/// Parses "60 days", "36 h", "10 min", "30 s" or "500 ms".
std::optional<Seconds> parse_span(std::string_view text);
/// Parses "2026-05-04", a calendar day.
std::optional<std::chrono::sys_days> parse_date(std::string_view text);
/// Parses a whole number with an optional binary K, M or G: "128K" is 131072.
std::optional<std::int64_t> parse_count(std::string_view text);
/// Parses a whole number without a unit; no leading zero.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// Parses a plain decimal number, optionally with a minus sign and an exponent; no leading zero.
std::optional<double> parse_number(std::string_view text);
/// Parses an amount: "2T", "$3M", "1.5B", "$2.80" (K, M, B or G, and T are powers of 1000, in lower case too).
std::optional<double> parse_amount(std::string_view text);
/// Parses "2%", "2.5 %" or "0.02".
std::optional<double> parse_share(std::string_view text);

// Each function returns the shortest text in its unit that reads back to the same value. Times and rates have the unit
// that leaves the number in [1, 1000), if there is one; sizes and counts have the largest unit that leaves it whole.

std::string format_duration(Duration duration);     ///< "5 us"; reads back exactly below 1000 s
std::string format_size(Bytes size);                ///< "32 KiB", "1536 KiB", "1000 B"
std::string format_bandwidth(BytesPerSecond rate);  ///< "450 GB/s"
std::string format_count(std::int64_t count);       ///< "128K", "1000"

/// Returns a string for people, rounded by at most one millionth of the rate: "64.2857 GB/s" for 450 GB/s over 7, where
/// the shortest exact string is in B/s.
std::string bandwidth_in_words(BytesPerSecond rate);

}  // namespace commfuse
