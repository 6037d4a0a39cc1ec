// SPDX-License-Identifier: Apache-2.0
// Real time: deadlines of threads, and limits on the rate at which data leaves a rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/recorder.h"
#include "model/units.h"
#include "validate/pace.h"

namespace commfuse::validate {

using WallClock = std::chrono::steady_clock;
using WallTime = WallClock::time_point;

/// Makes this thread wake up at the requested time instead of up to 50 us later, where the system supports that.
void ask_for_sharp_timers();

struct StartedThreads {
  std::size_t started = 0;
  std::size_t wanted = 0;
};

/// Returns the error of threads that cannot start, for example "3 of 16 threads started: Resource temporarily
/// unavailable; ...".
std::string too_few_threads(StartedThreads threads, std::string_view reason);

/// Returns the duration times a factor, to the nanosecond.
std::chrono::nanoseconds stretched(Duration duration, double times);
/// Returns the time divided by a factor.
Duration shortened(std::chrono::nanoseconds time, double times);

/// A token bucket that limits the rate at which data leaves one rank; the rank's lanes share it.
class Bucket {
 public:
  /// Largest number of bytes that one call of take() should reserve, so that lanes take turns.
  static constexpr std::int64_t chunk = 64 << 10;

  /// Reserves time for `bytes`, which may start to leave at `earliest`, and returns when all of them will have left.
  WallTime take(Bytes bytes, WallTime earliest, BytesPerSecond bandwidth);

 private:
  std::mutex mutex_;
  WallTime free_{};
};

}  // namespace commfuse::validate
