// SPDX-License-Identifier: Apache-2.0
#include "model/random/quantile_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

/// Returns the z that a standard normal variable exceeds with probability p, within 5e-4. Requires 0 < p <= 1/2.
/// Source: Hastings (1955), as in Abramowitz and Stegun, 26.2.23.
double rough_upper_quantile(double p) {
  const double t = std::sqrt(-2.0 * math::log(p));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

/// Returns the p-quantile z of the standard normal distribution, within 1e-15 + 1e-15 |z|. Uses two steps of Halley's
/// method, each of which cubes the error. Requires 0 < p < 1.
double normal_quantile(double p) {
  const double tail = std::min(p, 1.0 - p);
  double z = rough_upper_quantile(tail);
  for (int step = 0; step < 2; ++step) {
    const double density = math::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
    const double excess = (0.5 * math::erfc(z / std::numbers::sqrt2) - tail) / density;
    z += excess / (1.0 - 0.5 * excess * z);
  }
  return p > 0.5 ? z : -z;
}

double to_40_bits(double value) {
  constexpr int bits = 40;
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

}  // namespace

Quantile lognormal(double sigma) {
  check(sigma >= 0.0, "the sigma of a lognormal is not negative");
  return [sigma](double p, bool from_top) { return math::exp(sigma * normal_quantile(p) * (from_top ? -1.0 : 1.0)); };
}

Quantile pareto(const Pareto& distribution) {
  const double scale = distribution.scale;
  const double shape = distribution.shape;
  check(scale > 0.0 && shape > 0.0, "scale and shape of a Pareto distribution are positive");
  return [scale, shape](double p, bool from_top) { return scale * math::pow(from_top ? p : 1.0 - p, -1.0 / shape); };
}

Quantile empirical(std::span<const double> sorted) {
  check(!sorted.empty() && std::is_sorted(sorted.begin(), sorted.end()), "a sample is sorted and not empty");
  return [values = std::vector<double>(sorted.begin(), sorted.end())](double p, bool from_top) {
    const auto last = static_cast<double>(values.size() - 1);
    const double position = std::clamp(p * static_cast<double>(values.size()) - 0.5, 0.0, last);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    const auto value = [&](std::size_t i) { return from_top ? values[values.size() - 1 - i] : values[i]; };
    return value(below) + (value(above) - value(below)) * (position - std::floor(position));
  };
}

QuantileTable::QuantileTable(const Quantile& quantile, std::uint64_t count, double beyond)
    : last_(static_cast<std::uint32_t>(count - 1)) {
  check(count >= 1 && count <= (std::uint64_t{1} << 32), "a table has 1 to 2^32 words");
  cells_.reserve(2 * cells_of_half);
  fill(quantile, false, beyond);
  fill(quantile, true, beyond);
}

void QuantileTable::fill(const Quantile& quantile, bool from_top, double beyond) {
  constexpr std::size_t cells_of_doubling = std::size_t{1} << cell_bits;
  const double count = static_cast<double>(last_) + 1.0;
  const auto value_at = [&](double x) { return to_40_bits(quantile(x / count, from_top)); };
  double value = value_at(std::ldexp(1.0, first_exponent));
  for (std::size_t cell = 0; cell < cells_of_half; ++cell) {
    const int exponent = first_exponent + static_cast<int>(cell / cells_of_doubling);
    const double width = std::ldexp(1.0, exponent - cell_bits);
    const double begin = width * static_cast<double>(cells_of_doubling + cell % cells_of_doubling);
    if (begin > count / 2.0) {
      cells_.push_back({.base = beyond});
      continue;
    }
    const double next = value_at(begin + width);
    const double slope = (next - value) / width;
    cells_.push_back({.base = value - slope * begin, .slope = slope});
    value = next;
  }
}

// The bits of a positive double are its exponent followed by its mantissa, so the upper bits number the cell.
double QuantileTable::at(std::uint32_t word) const {
  constexpr int mantissa_bits = 52;
  constexpr std::uint64_t first_cell = std::uint64_t{1023 + first_exponent} << cell_bits;
  const std::uint32_t from_top = last_ - word;
  const double x = static_cast<double>(std::min(word, from_top)) + 0.5;
  const std::uint64_t cell = (std::bit_cast<std::uint64_t>(x) >> (mantissa_bits - cell_bits)) - first_cell;
  const Cell& entry = cells_[cell + (word > from_top ? cells_of_half : 0)];
  return entry.base + entry.slope * x;
}

}  // namespace commfuse
