// SPDX-License-Identifier: Apache-2.0
#include "model/text/amount.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(Amount, LargeNumbersHaveALetter) {
  EXPECT_EQ(large_number(3.8626e6), "3.86M");
  EXPECT_EQ(large_number(123.4e9), "123.4B");
  EXPECT_EQ(large_number(15e12), "15.00T");
  EXPECT_EQ(large_number(-412877.0), "-412.9k");
  EXPECT_EQ(large_number(418.73), "418.7");
}

TEST(Amount, MoneyHasCentsBelowAThousand) {
  EXPECT_EQ(amount_of_money("$", 8282449.0), "$8.28M");
  EXPECT_EQ(amount_of_money("$", 9.5), "$9.50");
  EXPECT_EQ(amount_of_money("EUR ", 0.64389), "EUR 0.6439");
  EXPECT_EQ(amount_of_money("$", 0.0), "$0.00");
  EXPECT_EQ(amount_of_money("$", -159.476), "-$159.48");
}

TEST(Amount, DaysBelowATenthHaveTwoDigits) {
  EXPECT_EQ(amount_of_days(78.54), "78.5");
  EXPECT_EQ(amount_of_days(0.0951), "0.1");
  EXPECT_EQ(amount_of_days(0.0949), "0.095");
  EXPECT_EQ(amount_of_days(0.0321), "0.032");
  EXPECT_EQ(amount_of_days(0.000288), "0.00029");
}

TEST(Amount, NumbersThatRoundUpToTheNextLetterHaveIt) {
  EXPECT_EQ(large_number(999'960.0), "1.00M");
  EXPECT_EQ(large_number(-999.97), "-1.00k");
  EXPECT_EQ(large_number(999'900.0), "999.9k");
  EXPECT_EQ(large_number(99'996.0), "100.0k");
  EXPECT_EQ(amount_of_money("$", 999.996), "$1.00k");
  EXPECT_EQ(amount_of_money("$", 999.97), "$999.97");
  EXPECT_EQ(amount_of_money("$", 0.99996), "$1.00");
}

}  // namespace
}  // namespace commfuse
