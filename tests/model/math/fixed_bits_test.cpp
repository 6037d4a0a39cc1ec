// SPDX-License-Identifier: Apache-2.0
// Tests digests of 100,000 function results and 20,000 quantiles. CTest runs these tests a second time without FMA and
// AVX2 (tests/CMakeLists.txt), where glibc's exp, expm1, log1p, erfc and pow would change their digests.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "model/random/quantile_table.h"
#include "model/sha256.h"
#include "tests/model/math/functions_of_math.h"

namespace commfuse::math::test {
namespace {

constexpr int results_per_function = 10'000;

/// Appends the bytes of a double, the lowest first.
void append(std::string& bytes, double value) {
  for (int shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<char>(to_bits(value) >> shift & 0xff));
  }
}

/// Returns the first 16 digits of SHA-256 over `count` results.
template <class Next>
std::string digest_of(const Next& next, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    append(bytes, next());
  }
  return sha256_of(bytes).substr(0, 16);
}

using Digests = std::map<std::string_view, std::string>;

TEST(FixedBits, HoldForEveryFunction) {
  Digests digests;
  for (const UnaryFunction& unary : unary_functions) {
    Arguments arguments(5);
    const auto next = [&] { return unary.function(arguments.inside(unary.low, unary.high)); };
    digests[unary.name] = digest_of(next, results_per_function);
  }
  Arguments arguments(6);
  const auto next = [&] {
    const double x = arguments.inside(0x1p-60, 1000.0);
    return pow(x, arguments.inside(-20.0, 20.0));
  };
  digests["pow"] = digest_of(next, 2 * results_per_function);
  EXPECT_EQ(digests, (Digests{{"erf", "02dd451f8e61aa53"},
                              {"erfc", "0c25788c7525bac3"},
                              {"exp", "6795b0f000344df8"},
                              {"expm1", "5117b535dd1ffa19"},
                              {"log", "d22c0022256aa640"},
                              {"log10", "4ceb7644b4fbb79c"},
                              {"log1p", "6f1e884bd56dd346"},
                              {"log2", "eedc7bcda897e2d3"},
                              {"pow", "ac2c25ff1c63e533"}}));
}

std::string quantile_digest(const Quantile& quantile) {
  Arguments arguments(7);
  return digest_of([&] { return quantile(arguments.inside(0x1p-40, 0.5), true); }, results_per_function);
}

// Quantiles are digested before a table rounds them to 40 bits.
TEST(FixedBits, HoldForQuantiles) {
  EXPECT_EQ(quantile_digest(lognormal(0.3)), "beeef5e37a6717c4");
  EXPECT_EQ(quantile_digest(pareto({.scale = 5.0, .shape = 2.5})), "c6a92087890504e9");
}

}  // namespace
}  // namespace commfuse::math::test
