// SPDX-License-Identifier: Apache-2.0
// Quantities as types, so that interfaces need no numbers without units. Time is in whole picoseconds.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace commfuse {

/// Time in whole picoseconds. `5us` and `2ms` convert exactly; a double does not convert at all.
using Duration = std::chrono::duration<std::int64_t, std::pico>;

/// Lengths of whole training runs, which exceed the 106 days that Duration can hold.
using Seconds = std::chrono::duration<double>;

/// Simulated time. It has no now(), so wall time cannot leak into a simulation.
struct SimClock {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<SimClock>;
  static constexpr bool is_steady = true;
};
using Instant = SimClock::time_point;

/// An amount of data, in bytes.
struct Bytes {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator*(std::int64_t times, Bytes a) { return {times * a.count}; }
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
};

/// Floating-point operations; a fused multiply-add counts as two. The count is a double, exact to 9e15, because whole
/// training steps exceed 2^63.
struct Flops {
  double count = 0.0;
  friend constexpr auto operator<=>(Flops, Flops) = default;
  friend constexpr Flops operator+(Flops a, Flops b) { return {a.count + b.count}; }
  friend constexpr Flops operator*(double times, Flops a) { return {times * a.count}; }
  constexpr Flops& operator+=(Flops other) {
    count += other.count;
    return *this;
  }
};

struct BytesPerSecond {
  double value = 0.0;
  friend constexpr auto operator<=>(BytesPerSecond, BytesPerSecond) = default;
  friend constexpr BytesPerSecond operator*(double times, BytesPerSecond rate) { return {times * rate.value}; }
};

struct FlopsPerSecond {
  double value = 0.0;
  friend constexpr auto operator<=>(FlopsPerSecond, FlopsPerSecond) = default;
  friend constexpr FlopsPerSecond operator*(double times, FlopsPerSecond rate) { return {times * rate.value}; }
};

struct Watts {
  double value = 0.0;
  friend constexpr auto operator<=>(Watts, Watts) = default;
  friend constexpr Watts operator*(double times, Watts power) { return {times * power.value}; }
};

/// Rounds seconds to the nearest picosecond. Aborts unless 0 <= seconds < 9.2e6 (the range of Duration).
Duration from_seconds(double seconds);

/// Requires rate > 0.
Duration operator/(Bytes amount, BytesPerSecond rate);
/// Requires rate > 0.
Duration operator/(Flops work, FlopsPerSecond rate);

// Divides instead of multiplying by 1e-12, because the quotient is the nearest double to the decimal number: 7 ps
// prints as 7e-06 us.
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) / 1e12; }
constexpr double to_microseconds(Duration d) { return static_cast<double>(d.count()) / 1e6; }

}  // namespace commfuse
