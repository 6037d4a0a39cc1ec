// SPDX-License-Identifier: Apache-2.0
// Transcendental functions that return the same bits on every machine, with every compiler and in WebAssembly. The C
// library's functions do not, because glibc uses different code on processors with FMA. So code must not call any other
// exp or log; tests/house checks that.
//
// All functions are pure: no errno, no global state, round to nearest. Compile them with -ffp-contract=off. A NaN
// result is always the positive quiet NaN without payload, because machines differ in its sign. Errors are in units
// in the last place (ulp) of the result: the largest of a random sample, not a proven bound.
// docs/decisions/0038-one-libm.md has the figures.
#pragma once

namespace commfuse::math {

/// Returns e^x within 0.52 ulp. exp(-inf) = 0; inf above 709.79; 0 below -745.14, subnormal from -708.4.
double exp(double x);

/// Returns the natural logarithm within 0.53 ulp. log(0) = -inf, log(inf) = inf; NaN for x < 0.
double log(double x);

/// Returns the logarithm to base 2 within 0.56 ulp. It has the special values of log.
double log2(double x);

/// Returns the logarithm to base 10 within 1 ulp. It has the special values of log.
double log10(double x);

/// Returns x^y within 0.53 ulp. Special values are those of C: pow(x, 0) = 1 and pow(1, y) = 1 even for NaN; NaN for x
/// < 0 unless y is an integer; pow(0, y < 0) = inf, negative for -0 and odd y.
double pow(double x, double y);

/// Returns e^x - 1 within 1 ulp, including for small x. expm1(-inf) = -1, expm1(-0) = -0; inf above 709.79.
double expm1(double x);

/// Returns log(1 + x) within 1 ulp, including for small x. log1p(-1) = -inf, log1p(-0) = -0; NaN for x < -1.
double log1p(double x);

/// Returns the error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x, within 1 ulp. erf(inf) = 1,
/// erf(-0) = -0.
double erf(double x);

/// Returns 1 - erf(x) within 2 ulp, even in the tail. erfc(inf) = 0, erfc(-inf) = 2; 0 above 27.23, subnormal from
/// 26.54.
double erfc(double x);

}  // namespace commfuse::math
