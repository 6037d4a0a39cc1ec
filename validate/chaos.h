// SPDX-License-Identifier: Apache-2.0
// What executors throw in to meet orders that a quiet machine never shows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "validate/values/random.h"

namespace commfuse::validate {

/// Yields and waits of at most 20 us here and there.
class Chaos {
 public:
  /// Seed 0: none. `number` tells those of one run apart: the lanes, or the processes.
  Chaos(std::uint64_t seed, std::size_t number) : on_(seed != 0), random_(Random(seed).next() + number) {}
  void disturb();
  /// Below `count`; 0 where there is no chaos.
  std::size_t draw(std::size_t count) { return on_ ? static_cast<std::size_t>(random_.next() >> 8U) % count : 0; }

 private:
  bool on_;
  Random random_;
};

}  // namespace commfuse::validate
