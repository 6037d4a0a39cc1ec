// SPDX-License-Identifier: Apache-2.0
#include "validate/values/weighted_rows.h"

#include <cstddef>
#include <cstring>

#include "model/check.h"

namespace commfuse::validate {

namespace {

template <class Number>
struct Sum {
  std::span<const Number> weights;
  const Number* first;  // the first row begins here
  std::size_t stride;
};

/// A vector of `bytes` bytes, on whose numbers the compiler operates simultaneously.
template <class Number, std::size_t bytes>
struct Vector {
  using Type [[gnu::vector_size(bytes)]] = Number;
  static constexpr std::size_t lanes = bytes / sizeof(Number);
};

/// Takes the total by reference: vectors that the caller's processor lacks cannot be passed by value.
template <class Lanes, class Number>
[[gnu::always_inline]] inline void add(Lanes& total, Number weight, const Number* from) {
  Lanes values;
  std::memcpy(&values, from, sizeof values);
  total += weight * values;
}

/// Computes one vector of sums, starting at column `column`.
template <std::size_t bytes, class Number>
[[gnu::always_inline]] inline void sum_vector(const Sum<Number>& task, std::size_t column, Number* sums) {
  using Lanes = typename Vector<Number, bytes>::Type;
  Lanes total{};
  const Number* row = task.first + column;
  for (const Number weight : task.weights) {
    add(total, weight, row);
    row += task.stride;
  }
  std::memcpy(sums + column, &total, bytes);
}

/// Computes four vectors of sums, starting at column `column`. They are four variables because g++ keeps an array in
/// memory.
template <std::size_t bytes, class Number>
[[gnu::always_inline]] inline void sum_four_vectors(const Sum<Number>& task, std::size_t column, Number* sums) {
  using Lanes = typename Vector<Number, bytes>::Type;
  constexpr std::size_t lanes = Vector<Number, bytes>::lanes;
  Lanes first{};
  Lanes second{};
  Lanes third{};
  Lanes fourth{};
  const Number* row = task.first + column;
  for (const Number weight : task.weights) {
    add(first, weight, row);
    add(second, weight, row + lanes);
    add(third, weight, row + 2 * lanes);
    add(fourth, weight, row + 3 * lanes);
    row += task.stride;
  }
  std::memcpy(sums + column, &first, bytes);
  std::memcpy(sums + column + lanes, &second, bytes);
  std::memcpy(sums + column + 2 * lanes, &third, bytes);
  std::memcpy(sums + column + 3 * lanes, &fourth, bytes);
}

/// Computes the sums of columns [0, count). The last block reaches back to columns that are already done, and
/// computes the same sums again. Returns the first remaining column, which is `count` unless a vector is wider than all
/// columns.
template <std::size_t bytes, class Number>
[[gnu::always_inline]] inline std::size_t sum_columns(const Sum<Number>& task, std::size_t count, Number* sums) {
  constexpr std::size_t lanes = Vector<Number, bytes>::lanes;
  std::size_t column = 0;
  for (; column + 4 * lanes <= count; column += 4 * lanes) {
    sum_four_vectors<bytes>(task, column, sums);
  }
  for (; column + lanes <= count; column += lanes) {
    sum_vector<bytes>(task, column, sums);
  }
  if (column < count && count >= lanes) {
    sum_vector<bytes>(task, count - lanes, sums);
    column = count;
  }
  return column;
}

template <class Number>
void sum_portable(const Sum<Number>& task, std::span<Number> sums) {
  for (std::size_t column = sum_columns<16>(task, sums.size(), sums.data()); column < sums.size(); ++column) {
    Number total = 0;
    for (std::size_t k = 0; k < task.weights.size(); ++k) {
      total += task.weights[k] * task.first[k * task.stride + column];
    }
    sums[column] = total;
  }
}

#if defined(__x86_64__)
/// Returns whether all columns are done.
template <class Number>
[[gnu::target("avx2")]] bool sum_avx2(const Sum<Number>& task, std::span<Number> sums) {
  return sum_columns<32>(task, sums.size(), sums.data()) == sums.size();
}
#endif

template <class Number>
void sum_by_the_fastest(std::span<const Number> weights, const Rows<const Number>& rows, std::span<Number> sums) {
  check(std::ssize(sums) <= rows.columns && std::ssize(weights) <= rows.rows, "a sum lies within its rows");
  const Sum<Number> task{weights, rows.first, static_cast<std::size_t>(rows.stride)};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && sum_avx2(task, sums)) {
    return;
  }
#endif
  sum_portable(task, sums);
}

}  // namespace

void weighted_sum(std::span<const float> weights, const Rows<const float>& rows, std::span<float> sums) {
  sum_by_the_fastest(weights, rows, sums);
}

void weighted_sum(std::span<const double> weights, const Rows<const double>& rows, std::span<double> sums) {
  sum_by_the_fastest(weights, rows, sums);
}

}  // namespace commfuse::validate
