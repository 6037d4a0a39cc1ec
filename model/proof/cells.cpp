// SPDX-License-Identifier: Apache-2.0
#include "model/proof/cells.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse {

CellMap::CellMap(const Program& program) : program_(program) {
  for (const Buffer& buffer : program.buffers) {
    grids_.push_back({count_, buffer.columns.blocks});
    count_ += buffer.rows.blocks * buffer.columns.blocks;
  }
}

RankCells::RankCells(const Program& program, const CellMap& cells, const Coordinates& coordinates) {
  blocks_.reserve(program.regions.size());
  for (const Region& region : program.regions) {
    const bool has_buffer = position(region.buffer) < program.buffers.size();  // false only for unused regions
    blocks_.push_back(has_buffer ? cells.block_of(region, coordinates) : CellBlock{});
  }
}

std::string CellMap::in_words(Cell cell) const {
  const auto after = std::upper_bound(grids_.begin(), grids_.end(), cell,
                                      [](Cell wanted, const Grid& grid) { return wanted < grid.first; });
  const auto buffer = static_cast<std::size_t>(after - grids_.begin()) - 1;
  const std::int32_t width = grids_[buffer].width;
  const std::int32_t inside = cell - grids_[buffer].first;
  if (width == 1) {
    return fmt::format("row {} of {}", inside, program_.buffers[buffer].name);
  }
  return fmt::format("row {}, column {} of {}", inside / width, inside % width, program_.buffers[buffer].name);
}

}  // namespace commfuse
