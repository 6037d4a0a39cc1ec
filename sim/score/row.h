// SPDX-License-Identifier: Apache-2.0
// Reads a row of a table cell by cell, and keeps the first mistake as a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/score/table.h"

namespace commfuse::score {

/// Largest extents of GEMMs and attention, bytes of messages and numbers of GPUs. They keep FLOPs and bytes in the
/// range of the arithmetic.
inline constexpr std::int64_t max_extent = std::int64_t{1} << 24;
inline constexpr std::int64_t max_bytes = std::int64_t{1} << 46;
inline constexpr std::int64_t max_gpus = 32768;

/// A wrong cell reads as 1 and gives the row a fault. A row with fewer or more cells than the header is faulty from the
/// start, and all its cells read as missing.
class Row {
 public:
  Row(const Table& table, std::size_t row);

  /// Returns the cell as written; empty if the column or the text is missing.
  [[nodiscard]] std::string_view text(const Column& column) const;
  [[nodiscard]] bool has(const Column& column) const { return !text(column).empty(); }
  /// Reads a whole number from 1 to `limit`.
  std::int64_t count(const Column& column, std::int64_t limit = max_extent);
  /// Reads a whole number from 0 to max_bytes.
  std::int64_t size(const Column& column);
  /// Reads a finite amount above 0, in any unit.
  double amount(const Column& column);
  /// Reads a time in microseconds, from a picosecond to 1e5 seconds.
  double microseconds(const Column& column);

  /// Records a fault, unless the row already has one.
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
