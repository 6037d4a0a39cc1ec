// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/check.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

// The casts are valid because an fp32 store holds only floats.
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }
const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }

}  // namespace

std::unique_ptr<Room> Rooms::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    return std::make_unique<Room>();
  }
  std::unique_ptr<Room> room = std::move(free_.back());
  free_.pop_back();
  return room;
}

void Rooms::give(std::unique_ptr<Room> room) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(room));
}

std::size_t Memory::Store::first(std::int64_t row, std::int64_t column) const { return length(row * columns + column); }
std::size_t Memory::Store::length(std::int64_t elements) const {
  return static_cast<std::size_t>(elements * bytes_of(dtype));
}

Area Memory::Store::contiguous(const Area& area) const {
  return area.columns == columns ? Area{area.row, area.column, 1, area.rows * area.columns} : area;
}

/// The bytes of an operand, row by row.
class Memory::RowWalk {
 public:
  RowWalk(Memory& memory, Rank rank, std::span<const Rectangle> operand)
      : memory_(memory), rank_(rank), rest_(operand) {}

  /// Returns the start of the next row. Requires a remaining row.
  std::byte* next() {
    if (row_ == area_.rows) {
      area_ = memory_.area_of(rest_.front());
      store_ = &memory_.stores_[memory_.place(rank_, rest_.front().buffer)];
      rest_ = rest_.subspan(1);
      row_ = 0;
    }
    return store_->bytes.data() + store_->first(area_.row + row_++, area_.column);
  }

 private:
  Memory& memory_;
  Rank rank_;
  std::span<const Rectangle> rest_;
  Area area_;
  std::int64_t row_ = 0;
  Store* store_ = nullptr;
};

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
  check(holds(rank), "the rank's memory belongs to this executor");
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
  const auto [rows, columns] = operand.empty() ? std::pair<std::int64_t, std::int64_t>() : extents_of(operand);
  Matrix<float> value(rows, columns);
  read_into(rank, operand, value.values());
  return value;
}

void Memory::read_into(Rank rank, std::span<const Rectangle> operand, std::span<float> values) const {
  for (const Rectangle& rectangle : operand) {
    const Area area = area_of(rectangle);
    const Store& from = stores_[place(rank, rectangle.buffer)];
    const std::span<const std::byte> bytes = from.bytes;
    const Area runs = from.contiguous(area);
    const auto width = static_cast<std::size_t>(runs.columns);
    for (std::int64_t row = 0; row < runs.rows; ++row) {
      decode(from.dtype, bytes.subspan(from.first(area.row + row, area.column), from.length(runs.columns)),
             values.first(width));
      values = values.subspan(width);
    }
  }
}

void Memory::write(Rank rank, std::span<const Rectangle> operand, const Matrix<float>& value) {
  std::span<const float> remaining = value.values();
  for (const Rectangle& rectangle : operand) {
    const Area area = area_of(rectangle);
    const auto size = static_cast<std::size_t>(area.rows * area.columns);
    check(area.columns == value.columns() && size <= remaining.size(), "a value fits where it is stored");
    Store& to = stores_[place(rank, rectangle.buffer)];
    const std::span<std::byte> bytes = to.bytes;
    const Area runs = to.contiguous(area);
    const auto width = static_cast<std::size_t>(runs.columns);
    for (std::int64_t row = 0; row < runs.rows; ++row) {
      encode(to.dtype, remaining.first(width),
             bytes.subspan(to.first(area.row + row, area.column), to.length(runs.columns)));
      remaining = remaining.subspan(width);
    }
  }
  check(remaining.empty(), "a value fits where it is stored");
}

std::optional<Rows<float>> Memory::place_of(Rank rank, std::span<const Rectangle> operand) {
  if (operand.size() != 1 || !is_stored_in(DType::fp32, operand)) {
    return std::nullopt;
  }
  const Area area = area_of(operand.front());
  Store& store = stores_[place(rank, operand.front().buffer)];
  return Rows<float>{floats(store.bytes.data() + store.first(area.row, area.column)), area.rows, area.columns,
                     store.columns};
}

Rows<const float> Memory::rows(Rank rank, std::span<const Rectangle> operand, std::vector<float>& room) const {
  if (operand.size() == 1 && is_stored_in(DType::fp32, operand)) {
    const Area area = area_of(operand.front());
    const Store& store = stores_[place(rank, operand.front().buffer)];
    return {floats(store.bytes.data() + store.first(area.row, area.column)), area.rows, area.columns, store.columns};
  }
  const auto [rows, columns] = extents_of(operand);
  room.resize(static_cast<std::size_t>(rows * columns));
  read_into(rank, operand, room);
  return {room.data(), rows, columns, columns};
}

void Memory::copy(Rank from_rank, std::span<const Rectangle> from, Rank to_rank, std::span<const Rectangle> to) {
  const auto [rows, columns] = extents_of(from);
  const Store& first = stores_[place(from_rank, from.front().buffer)];
  check(is_stored_in(first.dtype, from) && is_stored_in(first.dtype, to) && std::pair(rows, columns) == extents_of(to),
        "a copy fits where it is stored");
  const std::size_t length = first.length(columns);
  RowWalk source(*this, from_rank, from);
  RowWalk target(*this, to_rank, to);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(target.next(), source.next(), length);
  }
}

bool Memory::is_stored_in(DType dtype, std::span<const Rectangle> operand) const {
  return std::ranges::all_of(
      operand, [&](const Rectangle& rectangle) { return program_.buffers[position(rectangle.buffer)].dtype == dtype; });
}

std::pair<std::int64_t, std::int64_t> Memory::extents_of(std::span<const Rectangle> operand) const {
  std::int64_t rows = 0;
  const std::int64_t columns = area_of(operand.front()).columns;
  for (const Rectangle& rectangle : operand) {
    const Area area = area_of(rectangle);
    check(area.columns == columns, "the rectangles of an operand are equally wide");
    rows += area.rows;
  }
  return {rows, columns};
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
