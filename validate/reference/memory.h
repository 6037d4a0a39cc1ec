// SPDX-License-Identifier: Apache-2.0
// Every buffer of every rank, in the bytes of its dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/schedule/lower.h"
#include "model/schedule/sizes.h"
#include "validate/reference/matrix.h"

namespace commfuse::validate {

/// A rectangle of a matrix, in elements.
struct Area {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// Every byte is 0xff to begin with, NaN in every dtype, so that a value that is read before it is written spoils the
/// result. Values are rounded to the buffer's dtype when stored. Threads may share it as long as none writes an element
/// that another one reads or writes.
class Memory {
 public:
  /// Of all ranks, or of one `only`. Requires program and sizes to outlive the memory.
  Memory(const Program& program, const Sizes& sizes, std::optional<Rank> only = {});

  /// Whether the rank's buffers are here; the members below require it.
  [[nodiscard]] bool holds(Rank rank) const { return !only_ || *only_ == rank; }
  void poison();
  [[nodiscard]] Matrix<float> buffer(Rank rank, BufferId id) const;
  /// The rectangles stacked by rows.
  [[nodiscard]] Matrix<float> read(Rank rank, std::span<const Rectangle> operand) const;
  /// Requires the value to have the rows and columns of the stacked rectangles.
  void write(Rank rank, std::span<const Rectangle> operand, const Matrix<float>& value);

 private:
  struct Store {
    DType dtype = DType::fp32;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::vector<std::byte> bytes;

    /// The place of so many elements of a row.
    [[nodiscard]] std::size_t first(std::int64_t row, std::int64_t column) const;
    [[nodiscard]] std::size_t length(std::int64_t elements) const;
  };
  [[nodiscard]] std::size_t place(Rank rank, BufferId id) const;
  [[nodiscard]] Area area_of(const Rectangle& rectangle) const;

  const Program& program_;
  const Sizes& sizes_;
  std::optional<Rank> only_;
  std::vector<Store> stores_;
};

}  // namespace commfuse::validate
