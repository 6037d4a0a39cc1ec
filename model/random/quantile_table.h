// SPDX-License-Identifier: Apache-2.0
// From a uniform word to a draw of any distribution by a table: transcendental functions run when a table is built and
// never after, so a draw costs two loads and is the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace commfuse {

/// The quantile function, from both ends: `p` is the probability below the value, or above it where `from_top`. Asked
/// for p in (0, 0.52].
using Quantile = std::function<double(double p, bool from_top)>;

/// exp(sigma z) with z standard normal; the median is 1. Requires sigma >= 0.
Quantile lognormal(double sigma);
/// scale U^(-1/shape): never below scale, above x with probability (scale / x)^shape. Requires scale and shape > 0.
Quantile pareto(double scale, double shape);
/// A sorted sample, not empty; linear between neighbours, of which the i-th of n stands at (i + 1/2) / n. Never outside
/// the sample: beyond its largest value nothing is known.
Quantile empirical(std::span<const double> sorted);

/// Draws for the words 0 .. count-1. With d the distance of a word from the nearer end, the table is linear in d inside
/// cells that grow with d: 32 to every doubling. So the relative resolution of the probability is 1/32 everywhere, down
/// to the single outermost words: a lognormal's z is off by less than 1e-4 at any probability from 2^-31 to 1 - 2^-31,
/// which is what maxima over very many ops need. Values are rounded to 40 bits where cells meet, so that the last bit
/// of a maths library does not matter.
class QuantileTable {
 public:
  struct Cell {
    double base = 0.0;
    double slope = 0.0;  ///< The value is base + slope * (d + 1/2).
  };
  static constexpr int cell_bits = 5;           ///< Cells in a doubling, as a power of two.
  static constexpr int first_exponent = -1;     ///< The first cell begins at d + 1/2 = 2^-1.
  static constexpr std::size_t cells_of_half =  ///< Up to d + 1/2 = 2^32.
      static_cast<std::size_t>(32 - first_exponent) << cell_bits;

  /// Requires 1 <= count <= 2^32.
  QuantileTable(const Quantile& quantile, std::uint64_t count, double beyond = 1.0);

  /// The draw of a word. From `count` on, `beyond`; requires count > 2^31 for such a word.
  [[nodiscard]] double at(std::uint32_t word) const;

  /// The lower half of the words, then the upper.
  [[nodiscard]] std::span<const Cell> cells() const { return cells_; }
  /// The largest word.
  [[nodiscard]] std::uint32_t last() const { return last_; }

 private:
  void fill(const Quantile& quantile, bool from_top, double beyond);

  std::uint32_t last_;
  std::vector<Cell> cells_;
};

}  // namespace commfuse
