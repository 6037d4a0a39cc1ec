// SPDX-License-Identifier: Apache-2.0
#include "validate/values/weighted_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "validate/values/random.h"

namespace commfuse::validate {
namespace {

/// Returns numbers of many magnitudes, so that a different order of additions would give different bits.
template <class Number>
std::vector<Number> numbers(Random& random, std::int64_t count) {
  std::vector<Number> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto fraction = static_cast<Number>(static_cast<std::int64_t>(random.next() % 2001) - 1000) / Number{1000};
    values.push_back(fraction * static_cast<Number>(std::uint64_t{1} << (random.next() % 30)));
  }
  return values;
}

template <class Number>
void expect_sums_row_by_row() {
  Random random(7);
  for (std::int64_t columns = 0; columns < 80; ++columns) {
    const std::int64_t count = random.next() % 20;
    const std::int64_t stride = columns + static_cast<std::int64_t>(random.next() % 3);
    const std::vector<Number> rows = numbers<Number>(random, count * stride + 1);
    const std::vector<Number> weights = numbers<Number>(random, count);
    std::vector<Number> expected(static_cast<std::size_t>(columns), 0);
    for (std::int64_t k = 0; k < count; ++k) {
      for (std::int64_t j = 0; j < columns; ++j) {
        expected[static_cast<std::size_t>(j)] +=
            weights[static_cast<std::size_t>(k)] * rows[static_cast<std::size_t>(k * stride + j)];
      }
    }
    // One extra number on either side must stay unchanged.
    std::vector<Number> sums(static_cast<std::size_t>(columns + 2), -1);
    weighted_sum(weights, Rows<const Number>{rows.data(), count, columns, stride},
                 std::span(sums).subspan(1, static_cast<std::size_t>(columns)));
    EXPECT_EQ(std::vector(sums.begin() + 1, sums.end() - 1), expected) << columns << " columns of " << count << " rows";
    EXPECT_EQ(sums.front(), -1);
    EXPECT_EQ(sums.back(), -1);
  }
}

TEST(WeightedRows, AreSummedRowByRowInFloats) { expect_sums_row_by_row<float>(); }
TEST(WeightedRows, AreSummedRowByRowInDoubles) { expect_sums_row_by_row<double>(); }

}  // namespace
}  // namespace commfuse::validate
