// SPDX-License-Identifier: Apache-2.0
// Compares model/math with the C library in long double, over seeded arguments.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "tests/model/math/functions_of_math.h"

namespace commfuse::math::test {
namespace {

constexpr int arguments_per_function = 20'000;
constexpr bool has_reference = LDBL_MANT_DIG > DBL_MANT_DIG + 8;

TEST(MathLaws, ResultsAreWithinTheStatedErrorOfLongDouble) {
  if (!has_reference) {
    GTEST_SKIP() << "long double is no more precise than double here";
  }
  for (const UnaryFunction& unary : unary_functions) {
    Arguments arguments(1);
    for (int i = 0; i < arguments_per_function; ++i) {
      const double x = arguments.inside(unary.low, unary.high);
      ASSERT_LE(error_of(unary.function(x), unary.reference(x)), unary.largest_error) << unary.name << " " << x;
    }
  }
}

TEST(MathLaws, PowersAreWithinOneUlpOfLongDouble) {
  if (!has_reference) {
    GTEST_SKIP() << "long double is no more precise than double here";
  }
  Arguments arguments(2);
  for (int i = 0; i < arguments_per_function; ++i) {
    const double x = arguments.inside(0x1p-60, 1000.0);
    const double y = arguments.inside(-20.0, 20.0);
    const long double reference = powl(x, y);
    if (reference > DBL_MIN && reference < DBL_MAX) {
      ASSERT_LE(error_of(pow(x, y), reference), 1.0) << x << " " << y;
    }
  }
}

// erfc falls and all other functions rise. If the true results differ by more than both errors, the results of
// model/math must be in the same order.
TEST(MathLaws, ResultsKeepTheOrderOfDistantArguments) {
  if (!has_reference) {
    GTEST_SKIP() << "long double is no more precise than double here";
  }
  for (const UnaryFunction& unary : unary_functions) {
    const double sign = unary.name == "erfc" ? -1.0 : 1.0;
    Arguments arguments(3);
    int compared = 0;
    for (int i = 0; i < arguments_per_function; ++i) {
      const double x = arguments.inside(unary.low, unary.high);
      const double next = std::min(x + std::abs(x) * 0x1p-46, unary.high);
      const long double rise = std::abs(unary.reference(next) - unary.reference(x));
      if (rise > 2.0 * unary.largest_error * ulp_of(unary.function(next))) {
        ++compared;
        ASSERT_LT(sign * unary.function(x), sign * unary.function(next)) << unary.name << " " << x;
      }
    }
    EXPECT_GT(compared, arguments_per_function / 10) << unary.name;
  }
}

TEST(MathLaws, LogarithmsOfExactPowersAreExact) {
  for (int k = -1074; k <= 1023; ++k) {
    const double power = std::ldexp(1.0, k);
    EXPECT_EQ(log2(power), k);
    EXPECT_EQ(pow(2.0, k), power);
  }
  double power = 1.0;
  for (int k = 0; k <= 22; ++k, power *= 10.0) {  // 10^22 is the largest power of ten that is a double.
    EXPECT_EQ(log10(power), k);
    EXPECT_EQ(pow(10.0, k), power);
  }
}

TEST(MathLaws, SymmetriesAreExact) {
  Arguments arguments(4);
  for (int i = 0; i < arguments_per_function; ++i) {
    const double x = arguments.inside(-6.0, 6.0);
    EXPECT_EQ(erf(-x), -erf(x)) << x;
    EXPECT_EQ(pow(-x, 3.0), -pow(x, 3.0)) << x;
    EXPECT_EQ(pow(-x, 2.0), pow(x, 2.0)) << x;
  }
}

}  // namespace
}  // namespace commfuse::math::test
