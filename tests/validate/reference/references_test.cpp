// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/references.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "validate/reference/check_point.h"

namespace commfuse::validate {
namespace {

bool are_equal(const std::vector<Bounded>& a, const std::vector<Bounded>& b) {
  return std::ranges::equal(
      a, b, [](const Bounded& x, const Bounded& y) { return x.value == y.value && x.bound == y.bound; });
}

/// Returns programs of all operations, each by strategies that partition and round differently, so that some programs
/// share a reference and some do not.
std::vector<Program> programs() {
  std::vector<Program> result;
  for (const CheckedOperation& operation : checked_operations()) {
    for (const Strategy& strategy : strategies()) {
      const std::vector<SiteKind> kinds = kinds_of(operation.operation);
      for (const StrategyOptions& options : schedules_to_prove(strategy, kinds, 4, {})) {
        result.push_back(program_of({&operation, &strategy, options, 4}));
      }
    }
  }
  return result;
}

TEST(References, CachedResultsEqualNewOnes) {
  References references;
  std::size_t compared = 0;
  const std::vector<Program> all_programs = programs();
  for (std::size_t i = 0; i < all_programs.size(); i += 7) {
    const Program& program = all_programs[i];
    const Sizes sizes = checked_sizes(program).front();
    const std::uint64_t seed = 1 + i % 2;
    const IntegerData integers = integer_data(program, sizes, seed);
    ASSERT_EQ(references.integers(program, sizes, seed).inputs, integers.inputs) << program.name;
    ASSERT_EQ(references.integers(program, sizes, seed).unfused, integers.unfused) << program.name;
    const std::vector<Matrix<float>> inputs = input_data(program, sizes, DataKind::random, seed);
    ASSERT_EQ(references.inputs(program, sizes, seed), inputs) << program.name;
    ASSERT_EQ(references.unfused(program, sizes, seed), unfused(program, sizes, inputs, Functions::real))
        << program.name;
    ASSERT_TRUE(are_equal(references.bounded(program, sizes, seed), bounded(program, sizes, inputs))) << program.name;
    ++compared;
  }
  EXPECT_GT(compared, 100U);
}

}  // namespace
}  // namespace commfuse::validate
