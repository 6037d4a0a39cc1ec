// SPDX-License-Identifier: Apache-2.0
// SplitMix64 (Steele, Lea and Flood 2014): a small generator of test data, the same on every machine.
#pragma once

#include <cstdint>

namespace commfuse::validate {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  /// Returns a number in [-1, 1), a multiple of 2^-23, so exact in fp32.
  float uniform() { return static_cast<float>(next() >> 40U) * 0x1p-23F - 1.0F; }
  /// Returns a number in [-largest, largest].
  std::int64_t integer(std::int64_t largest) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(2 * largest + 1)) - largest;
  }

 private:
  std::uint64_t state_;
};

}  // namespace commfuse::validate
