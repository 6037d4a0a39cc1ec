// SPDX-License-Identifier: Apache-2.0
// Reads one row of a table cell by cell, and keeps the first mistake as a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/score/table.h"

namespace commfuse::score {

/// Largest size of a GEMM, an attention or a message: their FLOPs and bytes stay in the range of the arithmetic.
inline constexpr std::int64_t most_extent = std::int64_t{1} << 24;
inline constexpr std::int64_t most_bytes = std::int64_t{1} << 46;
inline constexpr std::int64_t most_gpus = 32768;

/// Wrong cells read as 1, and the row has a fault. A row with fewer or more cells than the header has a fault from the
/// start, and all its cells read as missing.
class Row {
 public:
  Row(const Table& table, std::size_t row);

  /// Empty if the column or the text is missing.
  [[nodiscard]] std::string_view text(const Column& column) const;
  [[nodiscard]] bool has(const Column& column) const { return !text(column).empty(); }
  /// Reads a whole number from 1 on.
  std::int64_t count(const Column& column, std::int64_t limit = most_extent);
  /// Reads a whole number from 0 on.
  std::int64_t size(const Column& column);
  /// Reads an amount of any unit, above 0 and finite.
  double amount(const Column& column);
  /// Reads a time in microseconds, from a picosecond to 1e5 seconds.
  double microseconds(const Column& column);

  /// Records a fault; the first one counts.
  void fault(std::string reason);
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] bool is_sound() const { return fault_.empty(); }
  [[nodiscard]] std::int64_t line() const { return table_->line_of(row_); }

 private:
  std::int64_t whole(const Column& column, std::int64_t least, std::int64_t limit);

  const Table* table_;
  std::size_t row_;
  bool whole_row_;
  std::string fault_;
};

}  // namespace commfuse::score
