// SPDX-License-Identifier: Apache-2.0
// Wording of times, shares and points in figures and pages.
#pragma once

#include <string>

#include "model/record/result.h"

namespace commfuse::reports {

/// Uses microseconds if the longest time shown is below 10 ms, else milliseconds; digits as in the terminal's table.
class TimeUnit {
 public:
  explicit TimeUnit(Duration longest) : milliseconds_(longest >= std::chrono::milliseconds(10)) {}

  [[nodiscard]] std::string name() const { return milliseconds_ ? "ms" : "\u00b5s"; }
  [[nodiscard]] double value(Duration duration) const {
    return to_microseconds(duration) / (milliseconds_ ? 1000.0 : 1.0);
  }
  [[nodiscard]] std::string digits(Duration duration) const;  ///< "12.3"
  [[nodiscard]] std::string text(Duration duration) const;    ///< "12.3 µs"

 private:
  bool milliseconds_;
};

/// "63.1%".
std::string percent(double share);
/// "commfuse (ring)".
std::string label_of(const ResultRow& row);
/// Turns "product 4K x 7K x 8K" into "GEMM 4K x 7K x 8K", with the sign of multiplication, and returns names such as
/// "memory-bound op of 84 MiB" and those of parameters unchanged.
std::string op_in_words(std::string name);
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
