// SPDX-License-Identifier: Apache-2.0
// The arithmetic that the interpreter and the unfused operation share: products, sums and functions of whole matrices.
#pragma once

#include <cstdint>
#include <span>

#include "model/program/program.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// Choice of the functions between GEMMs.
enum class Functions : std::uint8_t {
  real,
  /// Stand-ins that map small integers to small integers, so that every order of summation produces the same bits:
  /// swiglu is relu(gate) * up, gelu is relu, norm is the negative, and residual is the sum, all clipped to [-2, 2].
  /// They move data just as the real functions do.
  integer,
  /// No computation, only moves of bytes: products, functions, sums and collectives that add are omitted.
  none,
};

/// Order of the sums of a product. With either order, a block of rows gets the same bits as in the whole product.
enum class SumOrder : std::uint8_t {
  ascending,  ///< over k in ascending order: simple; blocks of columns get the same bits too
  blocked,    ///< with Eigen, many times faster; the order may differ between machines
};

/// Sums each element over k in ascending order, in the precision of the factors. A block of rows or columns therefore
/// gets the same bits as in the whole product.
Matrix<float> product(const Matrix<float>& a, const Matrix<float>& b);
Matrix<double> product(const Matrix<double>& a, const Matrix<double>& b);
/// Sets `out` to op(a) x op(b) with the sums of SumOrder::blocked, without copying a factor. Requires that `out`
/// overlaps neither factor.
void blocked_product(const Rows<const float>& a, bool transpose_a, const Rows<const float>& b, bool transpose_b,
                     const Rows<float>& out);

/// Turns rows into columns.
template <class Number>
Matrix<Number> transposed(const Matrix<Number>& input) {
  Matrix<Number> out(input.columns(), input.rows());
  for (std::int64_t row = 0; row < input.rows(); ++row) {
    for (std::int64_t column = 0; column < input.columns(); ++column) {
      out.at(column, row) = input.at(row, column);
    }
  }
  return out;
}
/// Returns a factor of a product, transposed on request.
template <class Number>
Matrix<Number> factor(const Matrix<Number>& input, bool transpose) {
  return transpose ? transposed(input) : input;
}
/// Returns the values of `narrow` in double.
Matrix<double> widened(const Matrix<float>& narrow);

/// Adds element by element, in the order of the terms, in fp32. Requires at least one term.
Matrix<float> sum(std::span<const Matrix<float>> terms);

/// Applies a function of one matrix whose columns come in blocks of `block` (swiglu pairs them: gate, up). NaN stays
/// NaN. The result is computed in double and rounded to fp32 once, so it is within one fp32 rounding of the exact
/// value.
Matrix<float> apply(Function function, Functions functions, std::int64_t block, const Matrix<float>& input);
/// Returns a + b, element by element; Functions::integer clips it.
Matrix<float> residual(Functions functions, const Matrix<float>& a, const Matrix<float>& b);

/// Applies the real functions, in double.
Matrix<double> apply(Function function, std::int64_t block, const Matrix<double>& input);

/// Returns sqrt(mean of squares + norm_epsilon) of a row, by which a norm divides.
double root_mean_square(std::span<const double> row);
inline constexpr double norm_epsilon = 1e-5;

double silu(double x);
double gelu(double x);
/// Upper bounds on the slopes of silu and gelu, which are 1.0998... near x = 2.40 and 1.1289... at x = sqrt(2).
inline constexpr double steepest_silu = 1.1;
inline constexpr double steepest_gelu = 1.13;

}  // namespace commfuse::validate
