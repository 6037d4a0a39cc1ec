// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace commfuse {

/// A set of values of an enumeration with at most 32 values, counted from 0.
template <class Enum>
class EnumSet {
 public:
  constexpr EnumSet(std::initializer_list<Enum> values = {}) {
    for (const Enum value : values) {
      add(value);
    }
  }
  [[nodiscard]] constexpr bool has(Enum value) const { return (bits_ & bit(value)) != 0; }
  constexpr void add(Enum value) { bits_ |= bit(value); }
  constexpr void drop(Enum value) { bits_ &= ~bit(value); }
  friend bool operator==(EnumSet, EnumSet) = default;

 private:
  static constexpr std::uint32_t bit(Enum value) { return std::uint32_t{1} << static_cast<unsigned>(value); }
  std::uint32_t bits_ = 0;
};

}  // namespace commfuse
