// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of model/math: its functions of one argument, their tested ranges, and errors in ulp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "model/math/functions.h"

namespace commfuse::math::test {

/// A function of model/math, the C library's function in long double, and the range of arguments in which the two are
/// compared.
struct UnaryFunction {
  std::string_view name;
  double (*function)(double);
  long double (*reference)(long double);
  double low;
  double high;
  int largest_error;  ///< in ulp
};

inline constexpr std::array<UnaryFunction, 8> unary_functions{{{"exp", exp, expl, -745.0, 709.7, 1},
                                                               {"log", log, logl, 0x1p-60, 16.0, 1},
                                                               {"log2", log2, log2l, 0x1p-60, 16.0, 1},
                                                               {"log10", log10, log10l, 0x1p-60, 16.0, 1},
                                                               {"expm1", expm1, expm1l, -40.0, 709.7, 1},
                                                               {"log1p", log1p, log1pl, -1.0 + 0x1p-50, 16.0, 1},
                                                               {"erf", erf, erfl, -6.0, 6.0, 1},
                                                               {"erfc", erfc, erfcl, -6.0, 27.2, 2}}};

/// Draws arguments by IEEE arithmetic alone, so that they are the same on every machine.
class Arguments {
 public:
  explicit Arguments(std::uint64_t seed) : words_(seed) {}

  double uniform(double low, double high) { return low + static_cast<double>(words_() >> 11) * 0x1p-53 * (high - low); }

  /// Returns a uniform argument, which with probability 1/2 is divided by a random power of two and then clamped.
  double inside(double low, double high) {
    const double value = uniform(low, high);
    const double scaled = std::ldexp(value, -static_cast<int>(words_() % 60));
    return words_() % 2 == 0 ? value : std::clamp(scaled, low, high);
  }

 private:
  std::mt19937_64 words_;
};

inline double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }
inline std::uint64_t to_bits(double value) { return std::bit_cast<std::uint64_t>(value); }

/// Returns the distance between two numbers, counted in doubles. Requires that neither is NaN, and that both have the
/// same sign or are below 2 in magnitude.
inline std::uint64_t doubles_between(double a, double b) {
  const auto ordinal = [](double value) {
    const auto magnitude = static_cast<std::int64_t>(to_bits(std::abs(value)));
    return std::signbit(value) ? -magnitude : magnitude;
  };
  return static_cast<std::uint64_t>(std::abs(ordinal(a) - ordinal(b)));
}

/// Returns the distance from a double to the next double away from 0.
inline double ulp_of(double value) {
  const double size = std::abs(value);
  return std::nextafter(size, INFINITY) - size;
}

/// Returns the error in ulp of the reference.
inline double error_of(double value, long double reference) {
  const long double difference = static_cast<long double>(value) - reference;
  return static_cast<double>(std::abs(difference)) / ulp_of(static_cast<double>(reference));
}

}  // namespace commfuse::math::test
