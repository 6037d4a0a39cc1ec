// SPDX-License-Identifier: Apache-2.0
// A table of rows for people, fitted to the terminal's width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/result.h"

namespace commfuse::reports {

/// Treatment of a column whose cells are all equal.
enum class Constant : std::uint8_t {
  shown,   ///< It remains a column.
  stated,  ///< Its value is stated above the table.
  hidden   ///< It is not mentioned.
};

struct FittedColumn {
  std::string name;
  Constant constant = Constant::shown;
  std::string usual{};    ///< A constant value that is not stated above the table, although other values are.
  bool at_right = false;  ///< Text is right-aligned, as numbers are.
  /// If a table is too wide, columns with the largest number are dropped first; columns with 0 stay.
  int expendable = 0;
};

/// Text around a table.
struct TableNotes {
  std::string above{};  ///< A sentence above the constants.
  std::string below{};  ///< The end of the line that names omitted columns; it says how to see them.
  std::string end{};    ///< A sentence below everything; omitted from a table without rows.
};

/// A table that may state constant columns above it (Constant). Less important columns that do not fit are dropped and
/// named below it. Columns are two spaces apart, or one space if that makes them fit. Text is left-aligned unless its
/// column is `at_right`, and numbers are right-aligned; "-" marks absent values. There may be millions of rows: to save
/// memory, the cells of a column share one string, which stays empty while all cells are equal.
class FittedTable {
 public:
  /// Fits the table to a terminal of `width` columns.
  FittedTable(std::vector<FittedColumn> columns, std::size_t width);

  /// Adds a row. Requires a value for each column.
  void add(std::span<const Value> values);

  /// Calls write(text) for one part of the table after another.
  void write(const TableNotes& notes, const std::function<void(const std::string&)>& write) const;

 private:
  struct Cell {
    std::uint32_t size = 0;
    bool is_text = true;
  };

  /// Cells of a column: the first cell `repeats` times, then other cells, joined in `text` and measured in `cells`.
  struct Cells {
    std::string first;
    bool first_is_text = true;
    bool at_right = false;
    std::size_t repeats = 0;
    std::string text;
    std::vector<Cell> cells;
    std::size_t width = 0;

    void add(const Value& value);
    [[nodiscard]] bool is_constant() const { return cells.empty(); }
  };

  /// The columns of the table in order, the number of spaces between them, and the columns that are dropped.
  struct Layout {
    std::vector<std::size_t> shown;
    std::vector<std::size_t> dropped;
    std::size_t gap = 2;
  };

  [[nodiscard]] bool is_shown(std::size_t column) const;
  [[nodiscard]] std::string stated_constants() const;
  [[nodiscard]] std::size_t width_of(const std::vector<std::size_t>& shown, std::size_t gap) const;
  [[nodiscard]] Layout layout() const;

  std::vector<FittedColumn> columns_;
  std::vector<Cells> cells_;
  std::size_t width_;
  std::size_t rows_ = 0;
};

}  // namespace commfuse::reports
