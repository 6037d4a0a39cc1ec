// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/cells.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse {

CellMap::CellMap(const Program& program) : program_(program), first_{0} {
  for (const Buffer& buffer : program.buffers) {
    first_.push_back(first_.back() + buffer.rows.blocks * buffer.columns.blocks);
  }
}

std::vector<Cell> CellMap::of(Slice operand, const Coordinates& here) const {
  std::vector<Cell> cells;
  for (const Region& region : program_.regions_of(operand)) {
    append(region, here, cells);
  }
  return cells;
}

std::string CellMap::in_words(Cell cell) const {
  const auto buffer =
      static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), cell) - first_.begin()) - 1;
  const std::int32_t width = program_.buffers[buffer].columns.blocks;
  const std::int32_t inside = cell - first_[buffer];
  if (width == 1) {
    return fmt::format("row {} of {}", inside, program_.buffers[buffer].name);
  }
  return fmt::format("row {}, column {} of {}", inside / width, inside % width, program_.buffers[buffer].name);
}

}  // namespace commfuse
