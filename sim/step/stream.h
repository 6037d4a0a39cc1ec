// SPDX-License-Identifier: Apache-2.0
// Kernels that one host issues one after the other to one in-order stream, as an element of the max-plus algebra: what
// a pass over many equal layers takes follows from one layer, exactly, without playing every kernel again.
#pragma once

#include <algorithm>
#include <chrono>

#include "model/units.h"

namespace commfuse {

/// The longest that a row of kernels may take: the sum of two, and of one kernel more, stays inside Duration.
inline constexpr Duration longest_stream = std::chrono::seconds(2'000'000);

/// Throws ConfigError: it would take longer.
[[noreturn]] void refuse_length();

/// Rounds to the nearest picosecond. Throws ConfigError above longest_stream. Requires seconds >= 0.
Duration stream_time(double seconds);

/// The same time. Throws ConfigError above longest_stream.
inline Duration counted(Duration time) {
  if (time > longest_stream) [[unlikely]] {
    refuse_length();
  }
  return time;
}

/// Where host and device are.
struct StreamState {
  Duration host{};
  Duration device{};
};

/// A row of kernels, at most longest_stream long; what makes it longer throws ConfigError. Kernel k starts when the
/// host has issued it and the device has done with those before it.
struct Stream {
  Duration host{};    ///< What the host takes to issue all of them.
  Duration device{};  ///< What the device takes for all of them.
  Duration
      end{};  ///< When the last one ends at the earliest, from the host's first issue: host bound kernels show here.

  /// One more kernel.
  void add(Duration issue, Duration time) {
    host += issue;
    device += time;
    end = counted(std::max(end + time, host + time));
  }
  /// Work of the host alone.
  void add_host(Duration issue) { host = counted(host + issue); }

  /// This row and then another one.
  [[nodiscard]] Stream then(const Stream& next) const {
    return {counted(host + next.host), device + next.device, counted(std::max(end + next.device, host + next.end))};
  }

  /// The same where the host waits for its end, and so did before it for that of the rows before.
  [[nodiscard]] Stream in_step() const {
    const Duration both = std::max(std::max(host, device), end);
    return {both, both, both};
  }

  /// The same where the device takes so much longer; what the device waits for its host hides some of it.
  [[nodiscard]] Stream longer(Duration more) const {
    return {host, counted(device + more), counted(std::max(end, device + more))};
  }

  /// Where host and device are after it, when its input arrives at `input`.
  [[nodiscard]] StreamState after(const StreamState& state, Duration input) const {
    return {counted(state.host + host), counted(std::max(std::max(state.device, input) + device, state.host + end))};
  }
};

}  // namespace commfuse
