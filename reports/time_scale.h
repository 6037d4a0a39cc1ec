// SPDX-License-Identifier: Apache-2.0
// The common unit of the times in a table, a figure or a page.
#pragma once

#include <string>

#include "model/units.h"

namespace commfuse::reports {

/// Microseconds below 10 ms, milliseconds below 10 s, then seconds. No number has more than seven characters, so
/// columns stay aligned.
struct TimeScale {
  const char* name;      ///< "us", "ms" or "s"
  const char* in_words;  ///< "microseconds"
  double microseconds;   ///< microseconds in one unit
  int decimals;

  [[nodiscard]] double value(Duration duration) const { return to_microseconds(duration) / microseconds; }
  /// Returns the number without the name of the unit: "1234.5".
  [[nodiscard]] std::string digits(Duration duration) const;
};

/// Returns the unit for times up to `longest`.
TimeScale time_scale(Duration longest);

}  // namespace commfuse::reports
