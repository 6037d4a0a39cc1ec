// SPDX-License-Identifier: Apache-2.0
// A matrix of elements, row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace commfuse::validate {

template <class Number>
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t columns, Number value = Number{})
      : rows_(rows), columns_(columns), values_(static_cast<std::size_t>(rows * columns), value) {}

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  [[nodiscard]] std::span<const Number> values() const { return values_; }
  [[nodiscard]] std::span<Number> values() { return values_; }
  [[nodiscard]] std::span<const Number> row(std::int64_t row) const { return values().subspan(first_of(row), width()); }
  [[nodiscard]] std::span<Number> row(std::int64_t row) { return values().subspan(first_of(row), width()); }
  [[nodiscard]] Number at(std::int64_t row, std::int64_t column) const {
    return values_[first_of(row) + static_cast<std::size_t>(column)];
  }
  [[nodiscard]] Number& at(std::int64_t row, std::int64_t column) {
    return values_[first_of(row) + static_cast<std::size_t>(column)];
  }

  friend bool operator==(const Matrix&, const Matrix&) = default;

 private:
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(columns_); }
  [[nodiscard]] std::size_t first_of(std::int64_t row) const { return static_cast<std::size_t>(row) * width(); }

  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<Number> values_;
};

/// A view of rows of a matrix; each row begins `stride` elements after the previous one.
template <class Number>
struct Rows {
  Number* first = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
};

}  // namespace commfuse::validate
