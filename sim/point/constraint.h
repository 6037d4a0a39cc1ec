// SPDX-License-Identifier: Apache-2.0
// A comparison of settings that points of a sweep must meet: `batch*seq == 131072`, `seq % (2*ranks) == 0`.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/settings.h"

namespace commfuse {

/// A mistake in a constraint, and its place; 0 is the first character.
class ConstraintError : public std::runtime_error {
 public:
  ConstraintError(std::size_t column, const std::string& message) : std::runtime_error(message), column_(column) {}
  [[nodiscard]] std::size_t column() const { return column_; }

 private:
  std::size_t column_;
};

/// An expression of 64-bit integers: + - * / % (division truncates towards zero, as in C++), parentheses, the suffixes
/// K, M and G, and one comparison (== != < <= > >=). Names are settings that are counts.
class Constraint {
 public:
  /// Throws ConstraintError for a mistake in the text; the message reads `sentence; remedy`.
  explicit Constraint(std::string_view text);

  /// Returns whether the settings meet the constraint. Throws ConstraintError when a number overflows 64 bits, a
  /// divisor is 0, or a setting is left open.
  [[nodiscard]] bool holds(const Settings& settings) const;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  enum class Kind : std::uint8_t { number, setting, operation };
  struct Step {  // in the order of a stack machine
    Kind kind = Kind::number;
    std::int64_t number = 0;
    const Field* field = nullptr;
    std::string_view operation;  // one of the operators; "neg" for a sign
    std::size_t column = 0;
  };
  friend class ConstraintParser;

  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace commfuse
