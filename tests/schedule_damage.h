// SPDX-License-Identifier: Apache-2.0
// Adds small mistakes to texts of schedules, which usually remain readable schedules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commfuse::test {

/// A small random generator of our own with equal numbers on every machine.
struct Dice {
  std::uint32_t state = 1;
  std::size_t below(std::size_t bound) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8U) % bound;
  }
};

inline std::string everywhere(std::string text, const std::string& right, const std::string& instead) {
  for (std::size_t at = text.find(right); at != std::string::npos; at = text.find(right, at + instead.size())) {
    text.replace(at, right.size(), instead);
  }
  return text;
}

/// Replaces a word by another word of its kind, usually in one place, sometimes everywhere.
inline void damage(std::string& text, const std::vector<std::vector<std::string>>& kinds, Dice& dice) {
  const std::vector<std::string>& kind = kinds[dice.below(kinds.size())];
  const std::string& from = kind[dice.below(kind.size())];
  const std::string& to = kind[dice.below(kind.size())];
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
    places.push_back(at);
  }
  if (places.empty()) {
    return;
  }
  if (dice.below(4) == 0) {
    text = everywhere(text, from, to);
  } else {
    text.replace(places[dice.below(places.size())], from.size(), to);
  }
}

}  // namespace commfuse::test
