// SPDX-License-Identifier: Apache-2.0
// Adds small mistakes to the text of a schedule; the damaged text can usually still be parsed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commfuse::test {

/// A small random generator that draws the same numbers on every machine.
struct Dice {
  std::uint32_t state = 1;
  std::size_t below(std::size_t bound) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8U) % bound;
  }
};

inline std::string replaced_everywhere(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Replaces a word by another word of its kind, usually once, sometimes everywhere.
inline void damage(std::string& text, const std::vector<std::vector<std::string>>& kinds, Dice& dice) {
  const std::vector<std::string>& kind = kinds[dice.below(kinds.size())];
  const std::string& from = kind[dice.below(kind.size())];
  const std::string& to = kind[dice.below(kind.size())];
  std::vector<std::size_t> positions;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
    positions.push_back(at);
  }
  if (positions.empty()) {
    return;
  }
  if (dice.below(4) == 0) {
    text = replaced_everywhere(text, from, to);
  } else {
    text.replace(positions[dice.below(positions.size())], from.size(), to);
  }
}

}  // namespace commfuse::test
