// SPDX-License-Identifier: Apache-2.0
// Wording of times, shares and points in figures and pages.
#pragma once

#include <string>

#include "model/record/result.h"
#include "reports/point_rows.h"
#include "reports/time_scale.h"

namespace commfuse::reports {

/// Formats times in the unit of the longest shown time, with the decimals of the terminal's table.
class TimeUnit {
 public:
  explicit TimeUnit(Duration longest) : scale_(time_scale(longest)) {}

  [[nodiscard]] std::string name() const;
  [[nodiscard]] double value(Duration duration) const { return scale_.value(duration); }
  [[nodiscard]] std::string digits(Duration duration) const { return scale_.digits(duration); }  ///< "12.3"
  [[nodiscard]] std::string text(Duration duration) const;                                       ///< "12.3 µs"

 private:
  TimeScale scale_;
};

/// Formats a share as "63.1%".
std::string percent(double share);
/// Returns the strategy and its parameters, such as "commfuse (ring)".
std::string label_of(const ResultRow& row);
/// Replaces the hyphen of "-1.8" by the minus sign (U+2212) of maps and texts.
std::string with_minus(std::string number);
/// Converts terminal text for a page: " 43 us" gets \u00b5s, and " -14" a minus sign.
std::string for_page(std::string_view text);
/// Returns the point of a row, such as "ranks 8, seq 32K".
std::string point_of(const ResultRow& row);
/// Returns whether the point could be run; rows of infeasible points have no time.
bool has_result(const ResultRow& row);
/// Returns the time of the slower row divided by the time of the faster. Requires results.
double times_slower(const ResultRow& slower, const ResultRow& faster);

}  // namespace commfuse::reports
