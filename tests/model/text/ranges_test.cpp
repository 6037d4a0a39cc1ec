// SPDX-License-Identifier: Apache-2.0
#include "model/text/ranges.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/refusal.h"

namespace commfuse {
namespace {

using Numbers = std::vector<std::int32_t>;

constexpr WholeNumbers rank_numbers{.flag = "--ranks", .lowest = 1, .highest = 64};

std::string numbers_refusal(std::string_view text) {
  return test::refusal_of([&] { parse_whole_numbers(text, rank_numbers); });
}

TEST(WholeNumbers, AreANumberAListOrARange) {
  EXPECT_EQ(parse_whole_numbers("4", rank_numbers), Numbers{4});
  EXPECT_EQ(parse_whole_numbers("2,4,8", rank_numbers), (Numbers{2, 4, 8}));
  EXPECT_EQ(parse_whole_numbers("1..4", rank_numbers), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(parse_whole_numbers("3..3", rank_numbers), Numbers{3});
  EXPECT_EQ(parse_whole_numbers("8,1..3,16", rank_numbers), (Numbers{8, 1, 2, 3, 16}));
}

TEST(WholeNumbers, KeepTheirOrderWithoutDuplicates) {
  EXPECT_EQ(parse_whole_numbers("8,2,8,1..3", rank_numbers), (Numbers{8, 2, 1, 3}));
}

// A search through the earlier numbers for each number would take minutes.
TEST(WholeNumbers, ALongRangeIsReadInALinearNumberOfSteps) {
  const Numbers numbers = parse_whole_numbers("2..1048576", {.flag = "--ranks", .lowest = 2, .highest = 1 << 20});
  EXPECT_EQ(numbers.size(), 1'048'575U);
  EXPECT_EQ(numbers.back(), 1'048'576);
}

TEST(WholeNumbers, EveryMistakeIsReportedWithItsRemedy) {
  const std::string write =
      " is not a whole number from 1 to 64; write a number, a list or a range, such as 4, 1..8 or 2,4,8";
  EXPECT_EQ(numbers_refusal(""), "--ranks: ''" + write);
  EXPECT_EQ(numbers_refusal("many"), "--ranks: 'many'" + write);
  EXPECT_EQ(numbers_refusal("-2"), "--ranks: '-2'" + write);
  EXPECT_EQ(numbers_refusal("2.5"), "--ranks: '2.5'" + write);
  EXPECT_EQ(numbers_refusal("2,,4"), "--ranks: ''" + write);
  EXPECT_EQ(numbers_refusal("1.."), "--ranks: ''" + write);
  EXPECT_EQ(numbers_refusal("..8"), "--ranks: ''" + write);
  EXPECT_EQ(numbers_refusal("1...8"), "--ranks: '.8'" + write);
  EXPECT_EQ(numbers_refusal("99999999999999999999"), "--ranks: '99999999999999999999'" + write);
  EXPECT_EQ(numbers_refusal("0..8"), "--ranks: 0 is out of range; write whole numbers from 1 to 64");
  EXPECT_EQ(numbers_refusal("4294967297"), "--ranks: 4294967297 is out of range; write whole numbers from 1 to 64");
  EXPECT_EQ(numbers_refusal("8..2"), "--ranks: '8..2' is descending; write 2..8");
}

TEST(SplitList, KeepsEmptyParts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split_list("a,b"), (Parts{"a", "b"}));
  EXPECT_EQ(split_list("a,,"), (Parts{"a", "", ""}));
  EXPECT_EQ(split_list(""), Parts{""});
}

}  // namespace
}  // namespace commfuse
