// SPDX-License-Identifier: Apache-2.0
// Real time: deadlines of threads, and limits on the rate at which data leaves a rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "model/program/recorder.h"
#include "model/units.h"
#include "validate/pace.h"

namespace commfuse::validate {

using WallClock = std::chrono::steady_clock;
using WallTime = WallClock::time_point;

/// Lets this thread wake up when it asks to, not up to 50 us later, where the system supports that.
void ask_for_sharp_timers();

/// Returns the duration times a factor, to the nanosecond.
std::chrono::nanoseconds stretched(Duration duration, double times);
/// Returns the time divided by a factor.
Duration shortened(std::chrono::nanoseconds time, double times);

/// A token bucket: limits the data that leaves one rank, whose lanes share it.
class Bucket {
 public:
  /// The size of the data that leaves in one turn.
  static constexpr std::int64_t chunk = 64 << 10;

  /// Reserves room, and returns when this many bytes will have left that may start at `earliest`.
  WallTime take(Bytes bytes, WallTime earliest, BytesPerSecond bandwidth);

 private:
  std::mutex mutex_;
  WallTime free_{};
};

}  // namespace commfuse::validate
