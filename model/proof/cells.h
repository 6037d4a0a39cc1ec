// SPDX-License-Identifier: Apache-2.0
// One rank's memory as a row of cells, one per block: buffer after buffer, each row by row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace commfuse {

using Cell = std::int32_t;

/// Cells of a region on one rank: rows of adjacent cells. Each row starts `width` cells after the previous one.
struct CellBlock {
  Cell first = 0;
  std::int32_t width = 0;
  std::int32_t rows = 0;
  std::int32_t columns = 0;

  /// Calls `visit` with every cell, row by row.
  template <class Visit>
  void for_each(const Visit& visit) const {
    Cell row = first;
    for (std::int32_t i = 0; i < rows; ++i, row += width) {
      for (std::int32_t j = 0; j < columns; ++j) {
        visit(row + j);
      }
    }
  }
};

class CellMap {
 public:
  /// `program` must outlive the map.
  explicit CellMap(const Program& program);

  /// Returns the number of cells of one rank.
  [[nodiscard]] Cell count() const { return count_; }
  /// Returns the cells of a region. Requires `region` to lie inside its buffer on the rank at `coordinates`.
  [[nodiscard]] CellBlock block_of(const Region& region, const Coordinates& coordinates) const {
    const Grid& grid = grids_[position(region.buffer)];
    const Cell row = region.row.at(program_.mesh, coordinates) * grid.width;
    return {grid.first + row + region.column.at(program_.mesh, coordinates), grid.width, region.rows, region.columns};
  }
  /// Calls `visit` with a region's cells row by row.
  template <class Visit>
  void for_each(const Region& region, const Coordinates& coordinates, const Visit& visit) const {
    block_of(region, coordinates).for_each(visit);
  }
  /// Returns, for example, "row 2 of gathered" or "row 2, column 1 of gate_up".
  [[nodiscard]] std::string in_words(Cell cell) const;

 private:
  /// Cells of a buffer, row after row.
  struct Grid {
    Cell first = 0;
    std::int32_t width = 1;  // cells per row
  };

  const Program& program_;
  std::vector<Grid> grids_;  // by buffer
  Cell count_ = 0;
};

/// Positions of all regions of a program on one rank, computed once, since operands share regions.
class RankCells {
 public:
  RankCells(const Program& program, const CellMap& cells, const Coordinates& coordinates);

  /// Returns the cell of an operand that consists of a single cell; otherwise -1.
  [[nodiscard]] Cell only_cell(Slice operand) const {
    const CellBlock& block = blocks_[operand.first];
    return operand.count == 1 && block.rows == 1 && block.columns == 1 ? block.first : -1;
  }

  /// Calls `visit` with the cells of an operand, from the top row of its stack to the bottom.
  template <class Visit>
  void for_each(Slice operand, const Visit& visit) const {
    const CellBlock* block = blocks_.data() + operand.first;
    if (operand.count == 1 && block->rows == 1 && block->columns == 1) {  // true for most operands
      visit(block->first);
      return;
    }
    for (const CellBlock* end = block + operand.count; block != end; ++block) {
      block->for_each(visit);
    }
  }

 private:
  std::vector<CellBlock> blocks_;  // by region
};

}  // namespace commfuse
