// SPDX-License-Identifier: Apache-2.0
#include "validate/values/arithmetic.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "model/check.h"
#include "model/math/functions.h"
#include "validate/values/weighted_rows.h"

namespace commfuse::validate {

namespace {

template <class Number>
Matrix<Number> product_of(const Matrix<Number>& a, const Matrix<Number>& b) {
  check(a.columns() == b.rows(), "a product contracts equal extents");
  Matrix<Number> out(a.rows(), b.columns());
  const Rows<const Number> right{b.values().data(), b.rows(), b.columns(), b.columns()};
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    weighted_sum(a.row(i), right, out.row(i));
  }
  return out;
}

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const RowMajor, Eigen::Unaligned, Eigen::OuterStride<>> mapped(const Rows<const float>& input) {
  return {input.first, input.rows, input.columns, Eigen::OuterStride<>(input.stride)};
}

// The comparisons are written so that NaN fails all of them and is returned.
double relu(double x) { return x < 0.0 ? 0.0 : x; }
double clipped(double x) { return x > 2.0 ? 2.0 : (x < -2.0 ? -2.0 : x); }

/// Computes every element of the result from the same element of the input.
template <class Number, class OneFunction>
Matrix<Number> each(const Matrix<Number>& input, OneFunction&& function) {
  Matrix<Number> out = input;
  for (Number& value : out.values()) {
    value = static_cast<Number>(function(static_cast<double>(value)));
  }
  return out;
}

/// Combines column blocks in pairs (gate, up) into one block each.
template <class Number, class TwoFunction>
Matrix<Number> each_pair(const Matrix<Number>& input, std::int64_t block, TwoFunction&& function) {
  check(input.columns() % (2 * block) == 0, "swiglu pairs column blocks");
  Matrix<Number> out(input.rows(), input.columns() / 2);
  for (std::int64_t row = 0; row < out.rows(); ++row) {
    for (std::int64_t column = 0; column < out.columns(); ++column) {
      const std::int64_t gate = column / block * 2 * block + column % block;
      out.at(row, column) = static_cast<Number>(
          function(static_cast<double>(input.at(row, gate)), static_cast<double>(input.at(row, gate + block))));
    }
  }
  return out;
}

template <class Number>
Matrix<Number> normed(const Matrix<Number>& input) {
  Matrix<Number> out = input;
  for (std::int64_t row = 0; row < input.rows(); ++row) {
    const std::vector<double> wide(input.row(row).begin(), input.row(row).end());
    const double divisor = root_mean_square(wide);
    for (Number& value : out.row(row)) {
      value = static_cast<Number>(static_cast<double>(value) / divisor);
    }
  }
  return out;
}

template <class Number>
Matrix<Number> apply_to(Function function, Functions functions, std::int64_t block, const Matrix<Number>& input) {
  const bool real = functions == Functions::real;
  switch (function) {
    case Function::add:
    case Function::copy: return input;
    case Function::swiglu:
      return real ? each_pair(input, block, [](double gate, double up) { return silu(gate) * up; })
                  : each_pair(input, block, [](double gate, double up) { return clipped(relu(gate) * up); });
    case Function::gelu: return real ? each(input, gelu) : each(input, [](double x) { return clipped(relu(x)); });
    case Function::norm: return real ? normed(input) : each(input, [](double x) { return clipped(-x); });
    case Function::residual:
    case Function::zero: break;
  }
  check(false, "the function has one matrix as its input");
  return input;
}

}  // namespace

Matrix<float> product(const Matrix<float>& a, const Matrix<float>& b) { return product_of(a, b); }
Matrix<double> product(const Matrix<double>& a, const Matrix<double>& b) { return product_of(a, b); }

void blocked_product(const Rows<const float>& a, bool transpose_a, const Rows<const float>& b, bool transpose_b,
                     const Rows<float>& out) {
  check((transpose_a ? a.rows : a.columns) == (transpose_b ? b.columns : b.rows), "a product contracts equal extents");
  Eigen::Map<RowMajor, Eigen::Unaligned, Eigen::OuterStride<>> to(out.first, out.rows, out.columns,
                                                                  Eigen::OuterStride<>(out.stride));
  if (transpose_a && transpose_b) {
    to.noalias() = mapped(a).transpose() * mapped(b).transpose();
  } else if (transpose_a) {
    to.noalias() = mapped(a).transpose() * mapped(b);
  } else if (transpose_b) {
    to.noalias() = mapped(a) * mapped(b).transpose();
  } else {
    to.noalias() = mapped(a) * mapped(b);
  }
}

Matrix<double> widened(const Matrix<float>& narrow) {
  Matrix<double> wide(narrow.rows(), narrow.columns());
  std::ranges::copy(narrow.values(), wide.values().begin());
  return wide;
}

Matrix<float> sum(std::span<const Matrix<float>> terms) {
  check(!terms.empty(), "a sum has a term");
  Matrix<float> out = terms.front();
  const std::span<float> sums = out.values();
  for (const Matrix<float>& term : terms.subspan(1)) {
    check(term.rows() == out.rows() && term.columns() == out.columns(), "the terms of a sum have one shape");
    const std::span<const float> values = term.values();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += values[i];
    }
  }
  return out;
}

Matrix<float> apply(Function function, Functions functions, std::int64_t block, const Matrix<float>& input) {
  return apply_to(function, functions, block, input);
}

Matrix<double> apply(Function function, std::int64_t block, const Matrix<double>& input) {
  return apply_to(function, Functions::real, block, input);
}

Matrix<float> residual(Functions functions, const Matrix<float>& a, const Matrix<float>& b) {
  const std::array terms{a, b};
  const Matrix<float> total = sum(terms);
  return functions == Functions::real ? total : each(total, clipped);
}

double root_mean_square(std::span<const double> row) {
  double squares = 0.0;
  for (const double x : row) {
    squares += x * x;
  }
  return std::sqrt(squares / static_cast<double>(row.size()) + norm_epsilon);
}

double silu(double x) { return x / (1.0 + math::exp(-x)); }

// With erfc instead of 1 + erf, nothing cancels for negative x.
double gelu(double x) { return 0.5 * x * math::erfc(-x / std::numbers::sqrt2); }

}  // namespace commfuse::validate
