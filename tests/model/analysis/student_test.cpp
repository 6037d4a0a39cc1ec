// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/student.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace commfuse {
namespace {

// With one degree of freedom the quantile is tan(pi (p - 1/2)). With two it is q sqrt(2 / (1 - q^2)), q = 2p - 1.
TEST(Student, HasClosedFormsForOneAndTwoDegreesOfFreedom) {
  EXPECT_NEAR(student_975(1), std::tan(0.475 * std::numbers::pi), 1e-13);
  EXPECT_NEAR(student_975(2), 0.95 * std::sqrt(2.0 / (1.0 - 0.95 * 0.95)), 1e-14);
}

// The values are from mpmath; the table ends at 30 degrees of freedom.
TEST(Student, ContinuesItsTableWithASeries) {
  EXPECT_NEAR(student_975(30), 2.04227245630, 1e-9);
  EXPECT_NEAR(student_975(31), 2.03951344640, 1e-9);
  EXPECT_NEAR(student_975(100), 1.98397151852, 1e-11);
  EXPECT_NEAR(student_975(1000), 1.96233908083, 1e-11);
}

TEST(Student, FallsToTheNormalQuantile) {
  for (std::size_t degrees = 1; degrees < 2000; ++degrees) {
    EXPECT_GT(student_975(degrees), student_975(degrees + 1)) << degrees;
  }
  EXPECT_NEAR(student_975(1'000'000'000), 1.9599639845400542, 1e-8);
}

}  // namespace
}  // namespace commfuse
