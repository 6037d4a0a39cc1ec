// SPDX-License-Identifier: Apache-2.0
// Kernels that one host issues, one after another, to one in-order stream, as an element of the max-plus algebra: the
// time of a pass over many identical layers follows exactly from the time of one layer, without simulating every kernel
// again.
#pragma once

#include <algorithm>
#include <chrono>

#include "model/units.h"

namespace commfuse {

/// Longest time of a stream. The sum of two such times and the time of a kernel is still in the range of Duration.
inline constexpr Duration longest_stream = std::chrono::seconds(2'000'000);

/// Throws ConfigError, which states that the model would take more than longest_stream.
[[noreturn]] void refuse_length();

/// Rounds to the nearest picosecond. Throws ConfigError above longest_stream. Requires seconds >= 0.
Duration stream_time(double seconds);

/// Returns the product, rounded to the nearest picosecond. Throws ConfigError above longest_stream. Requires factor >=
/// 0.
inline Duration times(double factor, Duration time) { return stream_time(factor * to_seconds(time)); }

/// Returns `time` unchanged. Throws ConfigError above longest_stream.
inline Duration counted(Duration time) {
  if (time > longest_stream) [[unlikely]] {
    refuse_length();
  }
  return time;
}

/// Times of one kernel.
struct StreamKernel {
  Duration issue{};  ///< Host time to issue the kernel.
  Duration time{};   ///< Device time of the kernel.
};

/// The times at which host and device are free.
struct StreamState {
  Duration host{};
  Duration device{};
};

/// A sequence of kernels, at most longest_stream long; operations that exceed this throw ConfigError. Kernel k starts
/// when the host has issued it and the device has finished the previous kernels.
struct Stream {
  Duration host{};    ///< Host time to issue all kernels.
  Duration device{};  ///< Device time of all kernels.
  Duration end{};     ///< Earliest end of the last kernel, after the host's first issue; later if the host is slow.

  /// Adds one kernel.
  void add(const StreamKernel& kernel) {
    host += kernel.issue;
    device += kernel.time;
    end = counted(std::max(end + kernel.time, host + kernel.time));
  }
  /// Adds work that only the host does.
  void add_host(Duration issue) { host = counted(host + issue); }

  /// Returns this sequence followed by `next`.
  [[nodiscard]] Stream then(const Stream& next) const {
    return {counted(host + next.host), device + next.device, counted(std::max(end + next.device, host + next.end))};
  }

  /// Returns the sequence as if the host waited for the previous sequences to end before it, and for this sequence to
  /// end after it.
  [[nodiscard]] Stream in_step() const {
    const Duration later = std::max(std::max(host, device), end);
    return {later, later, later};
  }

  /// Returns the sequence with device time added; some of it is hidden where the device waits for its host.
  [[nodiscard]] Stream longer(Duration more) const {
    return {host, counted(device + more), counted(std::max(end, device + more))};
  }

  /// Returns when host and device are free after the sequence, if its input arrives at `input`.
  [[nodiscard]] StreamState after(const StreamState& state, Duration input) const {
    return {counted(state.host + host), counted(std::max(std::max(state.device, input) + device, state.host + end))};
  }
};

}  // namespace commfuse
