// SPDX-License-Identifier: Apache-2.0
// Wording of times, shares and points in figures and pages.
#pragma once

#include <string>

#include "model/record/result.h"
#include "reports/time_scale.h"

namespace commfuse::reports {

/// Uses the unit of the longest time shown; digits as in the terminal's table.
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

/// "63.1%".
std::string percent(double share);
/// "commfuse (ring)".
std::string label_of(const ResultRow& row);
/// Returns the number "-1.8" as "\u22121.8", with the sign of maps and texts.
std::string with_minus(std::string number);
/// "ranks 8, seq 32K".
std::string point_of(const ResultRow& row);
/// True if the point could be run: rows of infeasible points have no time.
bool has_result(const ResultRow& row);
Duration makespan_of(const ResultRow& row);
/// Returns the time of the slower over the time of the faster. Requires results.
double times_slower(const ResultRow& slower, const ResultRow& faster);

}  // namespace commfuse::reports
