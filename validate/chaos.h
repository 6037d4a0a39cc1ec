// SPDX-License-Identifier: Apache-2.0
// Random delays, which executors add to run ops in orders that never occur on a quiet machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "validate/values/random.h"

namespace commfuse::validate {

/// Source of random delays and numbers. disturb() yields, waits for up to 20 us, or does nothing, at random.
class Chaos {
 public:
  /// Seed 0 means no delays. `number` distinguishes the users of one run: the lanes, or the processes.
  Chaos(std::uint64_t seed, std::size_t number) : on_(seed != 0), random_(Random(seed).next() + number) {}
  void disturb();
  /// Returns a number below `count`; 0 without chaos.
  std::size_t draw(std::size_t count) { return on_ ? static_cast<std::size_t>(random_.next() >> 8U) % count : 0; }

 private:
  bool on_;
  Random random_;
};

}  // namespace commfuse::validate
