// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/wall_clock.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <fmt/core.h>

#include <algorithm>

#include "model/check.h"

namespace commfuse::validate {

using std::chrono::nanoseconds;

void ask_for_sharp_timers() {
#ifdef __linux__
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // NOLINT(cppcoreguidelines-pro-type-vararg): prctl(2)
#endif
}

std::string too_few_threads(StartedThreads threads, std::string_view reason) {
  return fmt::format(
      "{} of {} threads started: {}; use fewer ranks, or raise the limits on threads and memory (ulimit -u, ulimit -v)",
      threads.started, threads.wanted, reason);
}

nanoseconds stretched(Duration duration, double times) {
  return nanoseconds(static_cast<std::int64_t>(static_cast<double>(duration.count()) * times / 1e3));
}

Duration shortened(nanoseconds time, double times) {
  return Duration(static_cast<std::int64_t>(static_cast<double>(time.count()) * 1e3 / times));
}

WallTime Bucket::take(Bytes bytes, WallTime earliest, BytesPerSecond bandwidth) {
  check(bandwidth.value > 0.0, "a link has a bandwidth");
  const std::lock_guard lock(mutex_);
  free_ = std::max(free_, earliest) + stretched(bytes / bandwidth, 1.0);
  return free_;
}

}  // namespace commfuse::validate
