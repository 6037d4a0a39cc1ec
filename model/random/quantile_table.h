// SPDX-License-Identifier: Apache-2.0
// Turns a uniform word into a draw from any distribution by looking it up in a table. Transcendental functions run only
// when a table is built, so a draw costs two loads and has the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace commfuse {

/// Quantile function that counts from either end: `p` is the probability below the value, or above it if `from_top`. It
/// is called with p in (0, 0.52].
using Quantile = std::function<double(double p, bool from_top)>;

/// Returns the quantiles of exp(sigma z) with z standard normal; the median is 1. Requires sigma >= 0.
Quantile lognormal(double sigma);
/// A Pareto distribution; both parameters are above 0.
struct Pareto {
  double scale = 1.0;
  double shape = 1.0;
};
/// Returns the quantiles of scale U^(-1/shape), which is never below scale and exceeds x with probability (scale /
/// x)^shape.
Quantile pareto(const Pareto& distribution);
/// Returns the quantiles of a sorted sample, which must not be empty: linear between neighbours, the i-th of n at (i +
/// 1/2) / n. They never leave the range of the sample, because nothing is known beyond its largest value.
Quantile empirical(std::span<const double> sorted);

/// Draws for the words 0 .. count-1. Let d be the distance of a word from the nearer end. The table is linear in d
/// inside each cell, and cells grow with d: 32 per doubling. So the relative resolution of the probability is 1/32
/// everywhere, down to the single outermost words. The z of a lognormal is off by less than 1e-4 at any probability
/// from 2^-31 to 1 - 2^-31, an accuracy that maxima over very many ops need. Values are rounded to 40 bits where cells
/// meet, so that the last bit of a maths library does not matter.
class QuantileTable {
 public:
  struct Cell {
    double base = 0.0;
    double slope = 0.0;  ///< the value is base + slope * (d + 1/2)
  };
  static constexpr int cell_bits = 5;           ///< cells per doubling, as a power of two
  static constexpr int first_exponent = -1;     ///< the first cell begins at d + 1/2 = 2^-1
  static constexpr std::size_t cells_of_half =  ///< up to d + 1/2 = 2^32
      static_cast<std::size_t>(32 - first_exponent) << cell_bits;

  /// Requires 1 <= count <= 2^32.
  QuantileTable(const Quantile& quantile, std::uint64_t count, double beyond = 1.0);

  /// Returns the draw of a word. Returns `beyond` for words of `count` and above, which requires count > 2^31.
  [[nodiscard]] double at(std::uint32_t word) const;

  /// Returns the cells of the lower half of the words, then the cells of the upper half.
  [[nodiscard]] std::span<const Cell> cells() const { return cells_; }
  /// Returns the largest word.
  [[nodiscard]] std::uint32_t last() const { return last_; }

 private:
  void fill(const Quantile& quantile, bool from_top, double beyond);

  std::uint32_t last_;
  std::vector<Cell> cells_;
};

}  // namespace commfuse
