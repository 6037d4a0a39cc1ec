// SPDX-License-Identifier: Apache-2.0
// Every buffer of every rank, in the bytes of its dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/program/lower.h"
#include "model/program/sizes.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// A rectangle of a matrix, in elements.
struct Area {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// Scratch memory of a GEMM in addition to its operands. a and b never shrink, because allocating memory costs more
/// than filling it; `out` is reallocated when its size changes.
struct Room {
  std::vector<float> a;
  std::vector<float> b;
  Matrix<float> out;
};

/// A pool of scratch memory; one thread at a time uses a Room.
class Rooms {
 public:
  std::unique_ptr<Room> take();
  void give(std::unique_ptr<Room> room);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Room>> free_;
};

/// Every byte starts as 0xff, NaN in every dtype, so that a value that is read before it is written spoils the result.
/// Values are rounded to the buffer's dtype when stored. Threads may share the memory as long as none writes an element
/// that another thread reads or writes.
class Memory {
 public:
  /// Holds the buffers of all ranks, or of one, `only`. Requires program and sizes to outlive the memory.
  Memory(const Program& program, const Sizes& sizes, std::optional<Rank> only = {});

  /// Returns whether this object holds the rank's buffers. All functions below that take a rank require this.
  [[nodiscard]] bool holds(Rank rank) const { return !only_ || *only_ == rank; }
  void poison();
  [[nodiscard]] Matrix<float> buffer(Rank rank, BufferId id) const;
  /// Returns the rectangles stacked by rows.
  [[nodiscard]] Matrix<float> read(Rank rank, std::span<const Rectangle> operand) const;
  /// Returns the operand without a copy if it is one rectangle of fp32; otherwise a copy in `room`, which grows as
  /// needed and must outlive the result.
  [[nodiscard]] Rows<const float> rows(Rank rank, std::span<const Rectangle> operand, std::vector<float>& room) const;
  /// Returns the operand's own memory if it is one rectangle of fp32; nothing otherwise.
  [[nodiscard]] std::optional<Rows<float>> place_of(Rank rank, std::span<const Rectangle> operand);
  /// Requires `value` to have the rows and columns of the stacked rectangles.
  void write(Rank rank, std::span<const Rectangle> operand, const Matrix<float>& value);
  /// Copies the bytes of one operand to another with the same rows and columns, which may be stacked differently.
  /// Requires that all rectangles of both have the same dtype, and that source and target do not overlap.
  void copy(Rank from_rank, std::span<const Rectangle> from, Rank to_rank, std::span<const Rectangle> to);
  /// Returns whether every rectangle of the operand is stored in this dtype.
  [[nodiscard]] bool is_stored_in(DType dtype, std::span<const Rectangle> operand) const;
  [[nodiscard]] Rooms& rooms() { return rooms_; }

 private:
  struct Store {
    DType dtype = DType::fp32;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::vector<std::byte> bytes;

    /// first() returns the offset of an element, length() the number of bytes that elements of a row occupy.
    [[nodiscard]] std::size_t first(std::int64_t row, std::int64_t column) const;
    [[nodiscard]] std::size_t length(std::int64_t elements) const;
    /// Returns the area as rows that are contiguous: itself, or one long row if it spans the store's whole width.
    [[nodiscard]] Area contiguous(const Area& area) const;
  };
  [[nodiscard]] std::size_t place(Rank rank, BufferId id) const;
  [[nodiscard]] Area area_of(const Rectangle& rectangle) const;
  /// Iterates over the rows of an operand.
  class RowWalk;
  /// Returns the rows and columns of the whole operand. Requires `operand` to have a rectangle.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> extents_of(std::span<const Rectangle> operand) const;
  void read_into(Rank rank, std::span<const Rectangle> operand, std::span<float> values) const;

  const Program& program_;
  const Sizes& sizes_;
  std::optional<Rank> only_;
  std::vector<Store> stores_;
  Rooms rooms_;
};

}  // namespace commfuse::validate
