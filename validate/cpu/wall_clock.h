// SPDX-License-Identifier: Apache-2.0
// Real time: what threads wait for, and how fast data may leave a rank.
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

/// Lets this thread wake up when it asks to, not up to 50 us later, where the system can do that.
void ask_for_sharp_timers();

/// To the nanosecond, so many times as long.
std::chrono::nanoseconds stretched(Duration duration, double times);
/// The time between two moments, so many times as short.
Duration shortened(std::chrono::nanoseconds time, double times);

/// A token bucket: the way out of one rank, which its lanes share.
class Bucket {
 public:
  /// The size of what is let out in one turn.
  static constexpr std::int64_t chunk = 64 << 10;

  /// When so many bytes will be out that may leave from `earliest` on; their room is taken.
  WallTime take(Bytes bytes, WallTime earliest, BytesPerSecond bandwidth);

 private:
  std::mutex mutex_;
  WallTime free_{};
};

}  // namespace commfuse::validate
