// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

Matrix<float> cut_out(const Matrix<float>& whole, const Area& area) {
  Matrix<float> part(area.rows, area.columns);
  for (std::int64_t row = 0; row < area.rows; ++row) {
    const std::span<const float> source = whole.row(area.row + row).subspan(static_cast<std::size_t>(area.column));
    std::copy_n(source.begin(), area.columns, part.row(row).begin());
  }
  return part;
}

}  // namespace

void require_storable(const Program& program) {
  for (const Buffer& buffer : program.buffers) {
    if (!can_store(buffer.dtype)) {
      throw std::runtime_error(fmt::format("the reference executor does not store {}, the dtype of buffer {}",
                                           name_of(buffer.dtype), buffer.name));
    }
  }
}

Interpreter::Interpreter(Lowered lowered, Sizes sizes)
    : lowered_(std::move(lowered)), sizes_(std::move(sizes)), memory_(*lowered_.program, sizes_) {
  require_storable(program());
  for (Rank rank = 0; rank < program().mesh.ranks(); ++rank) {
    commands_.push_back(commands_of(lowered_, rank));
  }
}

void Interpreter::prepare(std::span<const Matrix<float>> tensors) { fill(program(), sizes_, tensors, memory_); }

Execution Interpreter::run(const RunOptions& options) {
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    run_iteration(program(), sizes_, commands_, options, memory_);
  }
  return {};
}

void fill(const Program& program, const Sizes& sizes, std::span<const Matrix<float>> tensors, Memory& memory) {
  memory.poison();
  for (const Content& content : program.initial) {
    for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
      if (!memory.holds(rank)) {
        continue;
      }
      const std::array region{rectangle_of(program, content.here, program.mesh.coordinates(rank))};
      const Area area = area_of(program, sizes, content, rank);
      memory.write(rank, region, cut_out(tensors[position(content.tensor)], area));
    }
  }
}

Area area_of(const Program& program, const Sizes& sizes, const Content& content, Rank rank) {
  const Coordinates coordinates = program.mesh.coordinates(rank);
  const Tensor& whole = program.tensors[position(content.tensor)];
  const std::int64_t height = sizes.block[position(whole.rows.dimension)];
  const std::int64_t width = sizes.block[position(whole.columns.dimension)];
  return {content.row.at(program.mesh, coordinates) * height, content.column.at(program.mesh, coordinates) * width,
          content.here.rows * height, content.here.columns * width};
}

}  // namespace commfuse::validate
