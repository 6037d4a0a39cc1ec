// SPDX-License-Identifier: Apache-2.0
// Seeded draws that are identical on every machine: Philox, and our own whole-number arithmetic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/random/philox.h"

namespace commfuse::laws {

/// Identifies a series of draws: the seed, the setting's number and attempt, and the purpose.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t index = 0;
  std::uint32_t attempt = 0;
  std::uint32_t purpose = 0;
};

class Draws {
 public:
  explicit Draws(const DrawKey& key) : key_(key) {}

  /// Returns a number that is uniform over 0 to count - 1. Requires count >= 1.
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(word()) * count) >> 32U);
  }
  /// Returns true once in `count` calls on average.
  bool once_in(std::size_t count) { return below(count) == 0; }
  template <class Values>
  const auto& pick(const Values& values) {
    return values[below(values.size())];
  }

 private:
  std::uint32_t word() {
    if (used_ == words_.size()) {
      words_ = philox({key_.index, key_.attempt, key_.purpose, block_++}, key_.seed);
      used_ = 0;
    }
    return words_[used_++];
  }

  DrawKey key_;
  PhiloxWords words_{};
  std::size_t used_ = 4;
  std::uint32_t block_ = 0;
};

}  // namespace commfuse::laws
