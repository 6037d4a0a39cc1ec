// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/memory.h"

#include <algorithm>
#include <utility>

#include "model/check.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

std::size_t Memory::Store::first(std::int64_t row, std::int64_t column) const { return length(row * columns + column); }
std::size_t Memory::Store::length(std::int64_t elements) const {
  return static_cast<std::size_t>(elements * bytes_of(dtype));
}

Memory::Memory(const Program& program, const Sizes& sizes, std::optional<Rank> only)
    : program_(program), sizes_(sizes), only_(only) {
  for (Rank rank = only.value_or(0); rank < (only ? *only + 1 : program.mesh.ranks()); ++rank) {
    for (const Buffer& buffer : program.buffers) {
      Store store{buffer.dtype, sizes.elements(buffer.rows), sizes.elements(buffer.columns), {}};
      store.bytes.resize(store.length(store.rows * store.columns));
      stores_.push_back(std::move(store));
    }
  }
  poison();
}

std::size_t Memory::place(Rank rank, BufferId id) const {
  check(holds(rank), "the memory of a rank is where its executor is");
  return static_cast<std::size_t>(only_ ? 0 : rank) * program_.buffers.size() + position(id);
}

void Memory::poison() {
  for (Store& store : stores_) {
    std::ranges::fill(store.bytes, std::byte{0xff});
  }
}

Matrix<float> Memory::buffer(Rank rank, BufferId id) const {
  const Store& store = stores_[place(rank, id)];
  Matrix<float> value(store.rows, store.columns);
  decode(store.dtype, store.bytes, value.values());
  return value;
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
    const Store& from = stores_[place(rank, rectangle.buffer)];
    const std::span<const std::byte> bytes = from.bytes;
    for (std::int64_t row = 0; row < area.rows; ++row, ++to) {
      decode(from.dtype, bytes.subspan(from.first(area.row + row, area.column), from.length(columns)), value.row(to));
    }
  }
  return value;
}

void Memory::write(Rank rank, std::span<const Rectangle> operand, const Matrix<float>& value) {
  std::int64_t from = 0;
  for (const Rectangle& rectangle : operand) {
    const Area area = area_of(rectangle);
    check(area.columns == value.columns() && from + area.rows <= value.rows(), "a value fits where it is stored");
    Store& to = stores_[place(rank, rectangle.buffer)];
    const std::span<std::byte> bytes = to.bytes;
    for (std::int64_t row = 0; row < area.rows; ++row, ++from) {
      encode(to.dtype, value.row(from), bytes.subspan(to.first(area.row + row, area.column), to.length(area.columns)));
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
