// SPDX-License-Identifier: Apache-2.0
// Tests exact results of model/math: constants, both ends of the range of doubles, and special values.
#include "model/math/functions.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/model/math/functions_of_math.h"

namespace commfuse::math::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();
constexpr double least_subnormal = 0x1p-1074;
constexpr double least_normal = 0x1p-1022;
constexpr double largest = std::numeric_limits<double>::max();
constexpr std::uint64_t bits_of_nan = 0x7ff8000000000000;

/// Compares bits, so that the sign of 0 matters too.
void expect_same(double actual, double expected) { EXPECT_EQ(to_bits(actual), to_bits(expected)) << actual; }

TEST(MathFunctions, HaveTheConstantsOfTheTextbook) {
  expect_same(exp(0.0), 1.0);
  expect_same(exp(1.0), 0x1.5bf0a8b145769p+1);
  expect_same(log(2.0), 0x1.62e42fefa39efp-1);
  expect_same(log(10.0), 0x1.26bb1bbb55516p+1);
  expect_same(log2(8.0), 3.0);
  expect_same(log2(10.0), 0x1.a934f0979a371p+1);
  expect_same(log10(1000.0), 3.0);
  expect_same(log10(2.0), 0x1.34413509f79ffp-2);
  expect_same(pow(2.0, 0.5), 0x1.6a09e667f3bcdp+0);
  expect_same(pow(3.0, 4.0), 81.0);
  expect_same(pow(0.25, -1.5), 8.0);
  expect_same(expm1(-1.0), -0x1.43a54e4e98864p-1);
  expect_same(log1p(1.0), 0x1.62e42fefa39efp-1);
  expect_same(erf(1.0), 0x1.af767a741088bp-1);
  expect_same(erfc(1.0), 0x1.4226162fbddd5p-3);
}

TEST(MathFunctions, AreExactAtZeroAndOne) {
  for (const double zero : {0.0, -0.0}) {
    expect_same(exp(zero), 1.0);
    expect_same(expm1(zero), zero);
    expect_same(log1p(zero), zero);
    expect_same(erf(zero), zero);
    expect_same(erfc(zero), 1.0);
    expect_same(log(zero), -infinity);
    expect_same(log2(zero), -infinity);
    expect_same(log10(zero), -infinity);
  }
  expect_same(log(1.0), 0.0);
  expect_same(log2(1.0), 0.0);
  expect_same(log10(1.0), 0.0);
  expect_same(log1p(-1.0), -infinity);
}

TEST(MathFunctions, HaveTheirLimitsAtInfinity) {
  expect_same(exp(infinity), infinity);
  expect_same(exp(-infinity), 0.0);
  expect_same(expm1(infinity), infinity);
  expect_same(expm1(-infinity), -1.0);
  expect_same(log(infinity), infinity);
  expect_same(log2(infinity), infinity);
  expect_same(log10(infinity), infinity);
  expect_same(log1p(infinity), infinity);
  expect_same(erf(infinity), 1.0);
  expect_same(erf(-infinity), -1.0);
  expect_same(erfc(infinity), 0.0);
  expect_same(erfc(-infinity), 2.0);
}

TEST(MathFunctions, AreRightAtBothEndsOfTheirRange) {
  expect_same(exp(0x1.62e42fefa39efp+9), 0x1.fffffffffff2ap+1023);  // 709.782712893384
  expect_same(exp(0x1.62e42fefa39f0p+9), infinity);
  expect_same(exp(-708.5), 0x0.e6cf6d08897acp-1022);
  expect_same(exp(-745.1), least_subnormal);
  expect_same(exp(-745.2), 0.0);
  expect_same(expm1(710.0), infinity);
  expect_same(expm1(-50.0), -1.0);
  expect_same(erfc(26.6), 0x0.0c860a467b1a5p-1022);
  expect_same(erfc(27.3), 0.0);
  expect_same(erfc(-7.0), 2.0);
  expect_same(pow(2.0, 1024.0), infinity);
  expect_same(pow(-2.0, 1025.0), -infinity);
  expect_same(pow(2.0, -1074.0), least_subnormal);
  expect_same(pow(2.0, -1076.0), 0.0);
}

TEST(MathFunctions, AcceptSubnormalAndTheLargestArguments) {
  expect_same(log2(least_subnormal), -1074.0);
  expect_same(log2(3.0 * least_subnormal), -0x1.0c1a8ff971811p+10);
  expect_same(log(least_subnormal), -0x1.74385446d71c3p+9);
  expect_same(log10(least_subnormal), -0x1.434e6420f4374p+8);
  expect_same(log(largest), 0x1.62e42fefa39efp+9);
  expect_same(log2(largest), 1024.0);
  expect_same(log1p(largest), 0x1.62e42fefa39efp+9);
  expect_same(pow(least_subnormal, 0.5), 0x1p-537);
  for (const double tiny : {least_subnormal, least_normal, 1e-300}) {
    expect_same(exp(tiny), 1.0);
    expect_same(expm1(tiny), tiny);
    expect_same(log1p(tiny), tiny);
    expect_same(erfc(tiny), 1.0);
  }
}

TEST(MathFunctions, ReturnPositiveQuietNanOutsideTheirDomain) {
  for (const double outside : {-least_subnormal, -1.0, -infinity}) {
    EXPECT_EQ(to_bits(log(outside)), bits_of_nan);
    EXPECT_EQ(to_bits(log2(outside)), bits_of_nan);
    EXPECT_EQ(to_bits(log10(outside)), bits_of_nan);
    // The domain of log1p ends at -1, and -1 - 2^-52 is the next double below it.
    EXPECT_EQ(to_bits(log1p(outside - 1.0 - 0x1p-52)), bits_of_nan);
  }
  EXPECT_EQ(to_bits(pow(-8.0, 1.0 / 3.0)), bits_of_nan);
  for (const std::uint64_t bits : {bits_of_nan, std::uint64_t{0xfff8000000000000}, std::uint64_t{0x7ff8000000000123}}) {
    for (const UnaryFunction& unary : unary_functions) {
      EXPECT_EQ(to_bits(unary.function(from_bits(bits))), bits_of_nan) << unary.name;
    }
    EXPECT_EQ(to_bits(pow(from_bits(bits), 2.0)), bits_of_nan);
    EXPECT_EQ(to_bits(pow(2.0, from_bits(bits))), bits_of_nan);
  }
}

TEST(MathFunctions, PowHasTheSpecialValuesOfC) {
  for (const double x : {0.0, -0.0, 1.0, -3.5, infinity, -infinity, quiet_nan}) {
    expect_same(pow(x, 0.0), 1.0);
    expect_same(pow(x, -0.0), 1.0);
    expect_same(pow(1.0, x), 1.0);
  }
  expect_same(pow(-1.0, infinity), 1.0);
  expect_same(pow(-1.0, -infinity), 1.0);
  expect_same(pow(0.0, -1.0), infinity);
  expect_same(pow(-0.0, -1.0), -infinity);
  expect_same(pow(-0.0, -2.0), infinity);
  expect_same(pow(-0.0, 3.0), -0.0);
  expect_same(pow(-0.0, 2.0), 0.0);
  expect_same(pow(0.5, infinity), 0.0);
  expect_same(pow(0.5, -infinity), infinity);
  expect_same(pow(2.0, infinity), infinity);
  expect_same(pow(2.0, -infinity), 0.0);
  expect_same(pow(-infinity, 3.0), -infinity);
  expect_same(pow(-infinity, 2.0), infinity);
  expect_same(pow(-infinity, -3.0), -0.0);
  expect_same(pow(infinity, -0.5), 0.0);
}

}  // namespace
}  // namespace commfuse::math::test
