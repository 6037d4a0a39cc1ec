// SPDX-License-Identifier: Apache-2.0
// A table of rows for people, as wide as a terminal.
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

/// What becomes of a column whose cells are all the same.
enum class Constant : std::uint8_t {
  shown,  ///< It stays a column.
  told,   ///< Its value stands above the table.
  hidden  ///< It is not mentioned.
};

struct FittedColumn {
  std::string name;
  Constant constant = Constant::shown;
  std::string usual{};    ///< Text of a constant that is hidden although constants of this column are told.
  bool at_right = false;  ///< Texts stand at the right too.
  int expendable = 0;     ///< Where a table is too wide, columns of the largest number go first; those of 0 stay.
};

/// Text around a table.
struct TableNotes {
  std::string above{};  ///< A sentence above the constants.
  std::string below{};  ///< Ends the line that names columns left out: how to see them.
};

/// A table whose constant columns stand above it, and whose less important columns are left out, and named below it,
/// where they do not fit. Columns are two spaces apart, or one where that makes them fit. Texts stand at the left of
/// their columns, numbers at the right, "-" for absent values.
///
/// Memory: cells of each column lie one behind the other, and none is held as long as all are the same: there may be
/// millions of rows.
class FittedTable {
 public:
  /// `width`: columns of the terminal.
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

  /// The cells of a column: `same` times the first, then those in `text` and `cells`.
  struct Cells {
    std::string first;
    bool first_is_text = true;
    bool at_right = false;
    std::size_t same = 0;
    std::string text;
    std::vector<Cell> cells;
    std::size_t width = 0;

    void add(const Value& value);
    [[nodiscard]] bool is_constant() const { return cells.empty(); }
  };

  /// Which columns stand in the table, in order, with how many spaces between them, and which are left out.
  struct Layout {
    std::vector<std::size_t> shown;
    std::vector<std::size_t> left_out;
    std::size_t gap = 2;
  };

  [[nodiscard]] bool is_shown(std::size_t column) const;
  [[nodiscard]] std::string told() const;
  [[nodiscard]] std::size_t width_of(const std::vector<std::size_t>& shown, std::size_t gap) const;
  [[nodiscard]] Layout layout() const;

  std::vector<FittedColumn> columns_;
  std::vector<Cells> cells_;
  std::size_t width_;
  std::size_t rows_ = 0;
};

}  // namespace commfuse::reports
