// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3,
// SC 2011). A draw is a pure function of its counter and its key, so threads, shards and the order of work do not
// change it.
#pragma once

#include <array>
#include <cstdint>

namespace commfuse {

inline constexpr int philox_rounds = 10;
inline constexpr std::array<std::uint32_t, 2> philox_multipliers{0xd2511f53, 0xcd9e8d57};
inline constexpr std::array<std::uint32_t, 2> philox_weyl{0x9e3779b9, 0xbb67ae85};  // added to the key every round

using PhiloxWords = std::array<std::uint32_t, 4>;

/// Returns four independent words, uniform over all values. The key's first word is its lower half.
constexpr PhiloxWords philox(PhiloxWords counter, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t a = std::uint64_t{philox_multipliers[0]} * counter[0];
    const std::uint64_t b = std::uint64_t{philox_multipliers[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += philox_weyl[0];
    key1 += philox_weyl[1];
  }
  return counter;
}

}  // namespace commfuse
