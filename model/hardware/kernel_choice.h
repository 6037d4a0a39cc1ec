// SPDX-License-Identifier: Apache-2.0
// A coarse table of measured times that describes which kernels a library picks for GEMMs.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model/hardware/parameter.h"

namespace commfuse {

/// Times of a library's GEMMs relative to the formula of model/cost/gemm.h. The formula assumes the fastest tile;
/// cuBLAS picks a tile by rules that differ between generations of chips and are not published. The table has
/// the ratio of a GEMM's time to the formula's on a grid of three sizes, each a power of two: tiles of 128 x 128 per
/// SM, k and m. A GEMM of fewer than 128 columns does not fill a tile; where a library's rules change there, a second
/// table has further factors by n, k and m.
struct KernelChoice {
  static constexpr std::array<int, 10> tiles_knots{-7, -5, -3, -2, -1, 0, 1, 2, 3, 5};  ///< log2 of tiles per SM
  static constexpr std::array<int, 9> k_knots{5, 6, 8, 10, 11, 12, 13, 14, 16};         ///< log2 of k
  static constexpr std::array<int, 3> m_knots{4, 6, 9};                                 ///< log2 of m
  static constexpr std::size_t size = tiles_knots.size() * k_knots.size() * m_knots.size();
  static constexpr std::array<int, 3> narrow_knots{5, 6, 7};  ///< log2 of n; factors exist for all but the last
  static constexpr std::size_t narrow_size = (narrow_knots.size() - 1) * k_knots.size() * m_knots.size();
  static constexpr std::int64_t tile_width = 128;

  /// Time relative to the formula at each knot, above 0; the knot of m changes slowest and that of k fastest.
  std::array<double, size> factors = filled_with_1<size>();
  /// Further factor of narrow GEMMs at each knot: 1 from 128 columns on. The knot of m changes slowest, that of k
  /// fastest.
  std::array<double, narrow_size> narrow = filled_with_1<narrow_size>();
  Provenance provenance = Provenance::prior;
  std::string source;  ///< table of the fit: "gemm_h100_bf16_aic.csv"

  /// Sizes of a GEMM that select entries of the table. Requires tiles_per_sm > 0, k >= 1, m >= 1.
  struct Shape {
    double tiles_per_sm = 1.0;  ///< tiles of 128 x 128 over the SMs of the whole chip
    std::int64_t k = 1;
    std::int64_t m = 1;
    std::int64_t n = tile_width;
  };

  /// Index of a knot and its weight in the interpolation.
  struct Corner {
    std::size_t knot = 0;
    double weight = 0.0;
  };

  /// Returns the knots around a GEMM; their weights sum to 1. The weights are linear in `log2_in_steps` of each size;
  /// sizes beyond the grid count as its edge.
  static std::array<Corner, 8> corners(const Shape& shape) {
    const Position tiles = position_on<tiles_knots>(shape.tiles_per_sm);
    const Position depth = position_on<k_knots>(static_cast<double>(shape.k));
    const Position rows = position_on<m_knots>(static_cast<double>(shape.m));
    std::array<Corner, 8> around;
    for (std::size_t i = 0; i < around.size(); ++i) {
      const std::size_t upper_m = i >> 2;
      const std::size_t upper_tiles = (i >> 1) & 1;
      const std::size_t upper_k = i & 1;
      around[i] = {.knot = ((rows.cell + upper_m) * tiles_knots.size() + tiles.cell + upper_tiles) * k_knots.size() +
                           depth.cell + upper_k,
                   .weight = rows.weight_of(upper_m) * tiles.weight_of(upper_tiles) * depth.weight_of(upper_k)};
    }
    return around;
  }

  /// Returns the knots of the table `narrow` around a GEMM. Their weights sum to 1 up to 64 columns, and to less where
  /// the factor of 128 columns, 1, has a share. Requires n >= 1 below tile_width.
  static std::array<Corner, 8> narrow_corners(const Shape& shape) {
    const Position width = position_on<narrow_knots>(static_cast<double>(shape.n));
    const Position depth = position_on<k_knots>(static_cast<double>(shape.k));
    const Position rows = position_on<m_knots>(static_cast<double>(shape.m));
    constexpr std::size_t widths = narrow_knots.size() - 1;
    std::array<Corner, 8> around;
    for (std::size_t i = 0; i < around.size(); ++i) {
      const std::size_t upper_m = i >> 2;
      const std::size_t upper_n = (i >> 1) & 1;
      const std::size_t upper_k = i & 1;
      const std::size_t knot = width.cell + upper_n;
      const bool exists = knot < widths;
      around[i] = {
          .knot = ((rows.cell + upper_m) * widths + (exists ? knot : 0)) * k_knots.size() + depth.cell + upper_k,
          .weight = exists ? rows.weight_of(upper_m) * width.weight_of(upper_n) * depth.weight_of(upper_k) : 0.0};
    }
    return around;
  }

  /// Returns the time relative to the formula.
  [[nodiscard]] double factor(const Shape& shape) const {
    return shape.n < tile_width ? table_factor(shape) * narrow_factor(shape) : table_factor(shape);
  }

  /// Returns the factor of the table by tiles per SM, k and m, which ignores n.
  [[nodiscard]] double table_factor(const Shape& shape) const {
    const Position tiles = position_on<tiles_knots>(shape.tiles_per_sm);
    const Position depth = position_on<k_knots>(static_cast<double>(shape.k));
    const Position rows = position_on<m_knots>(static_cast<double>(shape.m));
    constexpr std::size_t next_tiles = k_knots.size();
    constexpr std::size_t next_m = tiles_knots.size() * next_tiles;
    const double* const corner = &factors[rows.cell * next_m + tiles.cell * next_tiles + depth.cell];
    const auto along_k = [&](const double* row) { return row[0] + depth.share * (row[1] - row[0]); };
    const auto at_m = [&](const double* plane) {
      const double lower = along_k(plane);
      return lower + tiles.share * (along_k(plane + next_tiles) - lower);
    };
    const double lower = at_m(corner);
    return lower + rows.share * (at_m(corner + next_m) - lower);
  }

  /// Returns the further factor of a narrow GEMM. Requires n >= 1 below tile_width.
  [[nodiscard]] double narrow_factor(const Shape& shape) const {
    double factor = 1.0;
    for (const Corner& corner : narrow_corners(shape)) {
      factor += corner.weight * (narrow[corner.knot] - 1.0);
    }
    return factor;
  }

  /// Returns log2(x), exact for powers of two and linear between them; identical on all platforms. Requires a normal x
  /// > 0.
  static constexpr double log2_in_steps(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
    constexpr std::uint64_t mantissa = (std::uint64_t{1} << 52) - 1;
    return exponent + (std::bit_cast<double>((bits & mantissa) | (std::uint64_t{1023} << 52)) - 1.0);
  }

 private:
  struct Position {
    std::size_t cell = 0;  ///< index of the knot below
    double share = 0.0;    ///< share of the way to the knot above
    [[nodiscard]] double weight_of(std::size_t upper) const { return upper == 1 ? share : 1.0 - share; }
  };

  /// Returns the cell of each octave from the first knot to the last.
  template <const auto& Knots>
  static constexpr auto cells_of_octaves() {
    std::array<std::uint8_t, Knots.back() - Knots.front() + 1> cells{};
    for (std::size_t octave = 0, cell = 0; octave < cells.size(); ++octave) {
      while (cell + 2 < Knots.size() && Knots.front() + static_cast<int>(octave) >= Knots[cell + 1]) {
        ++cell;
      }
      cells[octave] = static_cast<std::uint8_t>(cell);
    }
    return cells;
  }

  template <const auto& Knots>
  static Position position_on(double value) {
    static constexpr auto cells = cells_of_octaves<Knots>();
    static constexpr double first = Knots.front();
    static constexpr double last = Knots.back();
    const double logarithm = log2_in_steps(value);
    const double at = logarithm < first ? first : logarithm > last ? last : logarithm;
    const std::size_t cell = cells[static_cast<std::size_t>(at - first)];
    return {.cell = cell, .share = (at - Knots[cell]) / (Knots[cell + 1] - Knots[cell])};
  }

  template <std::size_t Size>
  static constexpr std::array<double, Size> filled_with_1() {
    std::array<double, Size> ones{};
    ones.fill(1.0);
    return ones;
  }
};

/// Returns the key of a knot in a hardware file: "m_16" for 4, "n_64" for 6, and "1/32" for -5 or "8" for 3 tiles per
/// SM.
std::string m_key(int log2_of_m);
std::string n_key(int log2_of_n);
std::string tiles_key(int log2_of_tiles);

}  // namespace commfuse
