// SPDX-License-Identifier: Apache-2.0
#include "reports/time_scale.h"

#include <fmt/format.h>

#include <chrono>

namespace commfuse::reports {

std::string TimeScale::digits(Duration duration) const { return fmt::format("{:.{}f}", value(duration), decimals); }

TimeScale time_scale(Duration longest) {
  using namespace std::chrono_literals;
  if (longest >= 10s) {
    return {.name = "s", .in_words = "seconds", .microseconds = 1e6, .decimals = longest >= 1000s ? 0 : 3};
  }
  if (longest >= 10ms) {
    return {.name = "ms", .in_words = "milliseconds", .microseconds = 1e3, .decimals = longest >= 1s ? 1 : 3};
  }
  return {.name = "us", .in_words = "microseconds", .microseconds = 1.0, .decimals = 1};
}

}  // namespace commfuse::reports
