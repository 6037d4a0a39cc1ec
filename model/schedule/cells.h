// SPDX-License-Identifier: Apache-2.0
// One rank's memory as a row of cells, one a block: buffer after buffer, each row by row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/schedule/program.h"

namespace commfuse {

using Cell = std::int32_t;

class CellMap {
 public:
  /// Keeps a reference to the program.
  explicit CellMap(const Program& program);

  /// Cells of one rank.
  [[nodiscard]] Cell count() const { return first_.back(); }
  /// Calls `visit` with a region's cells row by row. Requires the region inside its buffer.
  template <class Visit>
  void for_each(const Region& region, const Coordinates& here, const Visit& visit) const {
    const std::int32_t width = program_.buffers[position(region.buffer)].columns.blocks;
    Cell row = first_[position(region.buffer)] + region.row.at(program_.mesh, here) * width +
               region.column.at(program_.mesh, here);
    for (std::int32_t i = 0; i < region.rows; ++i, row += width) {
      for (std::int32_t j = 0; j < region.columns; ++j) {
        visit(row + j);
      }
    }
  }
  /// Appends them.
  void append(const Region& region, const Coordinates& here, std::vector<Cell>& cells) const {
    for_each(region, here, [&](Cell cell) { cells.push_back(cell); });
  }
  /// The cells of an operand, from the top row of its stack to the bottom.
  [[nodiscard]] std::vector<Cell> of(Slice operand, const Coordinates& here) const;
  /// "row 2 of gathered", "row 2, column 1 of gate_up".
  [[nodiscard]] std::string in_words(Cell cell) const;

 private:
  const Program& program_;
  std::vector<Cell> first_;  // by buffer, and the total
};

}  // namespace commfuse
