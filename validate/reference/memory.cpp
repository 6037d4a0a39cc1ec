// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/memory.h"

#include <algorithm>
#include <limits>

#include "model/check.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

Memory::Memory(const Program& program, const Sizes& sizes) : program_(program), sizes_(sizes) {
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    for (const Buffer& buffer : program.buffers) {
      buffers_.emplace_back(sizes.elements(buffer.rows), sizes.elements(buffer.columns));
    }
  }
  poison();
}

void Memory::poison() {
  for (Matrix<float>& buffer : buffers_) {
    std::ranges::fill(buffer.values(), std::numeric_limits<float>::quiet_NaN());
  }
}

Matrix<float> Memory::read(Rank rank, std::span<const Rectangle> operand) const {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  for (const Rectangle& rectangle : operand) {
    rows += area_of(rectangle).rows;
    columns = area_of(rectangle).columns;
  }
  Matrix<float> value(rows, columns);
  std::int64_t to = 0;
  for (const Rectangle& rectangle : operand) {
    const Area area = area_of(rectangle);
    check(area.columns == columns, "the rectangles of an operand are equally wide");
    const Matrix<float>& from = buffer(rank, rectangle.buffer);
    for (std::int64_t row = 0; row < area.rows; ++row, ++to) {
      const std::span<const float> source = from.row(area.row + row);
      std::ranges::copy(source.subspan(static_cast<std::size_t>(area.column), static_cast<std::size_t>(columns)),
                        value.row(to).begin());
    }
  }
  return value;
}

void Memory::write(Rank rank, std::span<const Rectangle> operand, const Matrix<float>& value) {
  std::int64_t from = 0;
  for (const Rectangle& rectangle : operand) {
    const Area area = area_of(rectangle);
    check(area.columns == value.columns() && from + area.rows <= value.rows(), "a value fits where it is stored");
    const DType dtype = program_.buffers[position(rectangle.buffer)].dtype;
    Matrix<float>& to = buffers_[place(rank, rectangle.buffer)];
    for (std::int64_t row = 0; row < area.rows; ++row, ++from) {
      const auto target = to.row(area.row + row).subspan(static_cast<std::size_t>(area.column));
      std::ranges::transform(value.row(from), target.begin(), [&](float x) { return stored(dtype, x); });
    }
  }
  check(from == value.rows(), "a value fits where it is stored");
}

Area Memory::area_of(const Rectangle& rectangle) const {
  const Buffer& buffer = program_.buffers[position(rectangle.buffer)];
  const std::int64_t height = sizes_.block[position(buffer.rows.dimension)];
  const std::int64_t width = sizes_.block[position(buffer.columns.dimension)];
  check(rectangle.row >= 0 && rectangle.row + rectangle.rows <= buffer.rows.blocks && rectangle.column >= 0 &&
            rectangle.column + rectangle.columns <= buffer.columns.blocks,
        "a region lies inside its buffer");
  return {rectangle.row * height, rectangle.column * width, rectangle.rows * height, rectangle.columns * width};
}

}  // namespace commfuse::validate
