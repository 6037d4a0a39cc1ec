// SPDX-License-Identifier: Apache-2.0
#include "sim/point/constraint.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/known.h"

namespace commfuse {
namespace {

/// Returns settings with ranks 8 (the default), batch 4 and seq 32K.
Settings example() {
  Settings settings;
  settings.put(*find_field("batch"), {"4", {}});
  settings.put(*find_field("seq"), {"32K", {}});
  return settings;
}

bool holds(const std::string& text) { return Constraint(text).holds(example()); }

/// Returns a string such as "column: message".
std::string constraint_refusal(const std::string& text) {
  try {
    holds(text);
  } catch (const ConstraintError& error) {
    return std::to_string(error.column()) + ": " + error.what();
  }
  return "accepted";
}

TEST(Constraint, ComparesWholeNumbers) {
  EXPECT_TRUE(holds("batch*seq == 131072"));
  EXPECT_TRUE(holds("batch*seq==128K"));
  EXPECT_FALSE(holds("batch*seq != 128K"));
  EXPECT_TRUE(holds("ranks <= 8"));
  EXPECT_FALSE(holds("ranks < 8"));
  EXPECT_TRUE(holds("seq >= 4096"));
  EXPECT_TRUE(holds("  seq > 4096  "));
}

TEST(Constraint, ProductsBindTighterAndLeftComesFirst) {
  EXPECT_TRUE(holds("2 + 3*4 == 14"));
  EXPECT_TRUE(holds("(2 + 3)*4 == 20"));
  EXPECT_TRUE(holds("100/7/2 == 7"));
  EXPECT_TRUE(holds("10 - 3 - 2 == 5"));
  EXPECT_TRUE(holds("17 % 5 == 2"));
  EXPECT_TRUE(holds("-7/2 == -3"));
  EXPECT_TRUE(holds("-7 % 4 == -3"));
  EXPECT_TRUE(holds("3 - -2 == 5"));
  EXPECT_TRUE(holds("-(1 + 2) == --3 - 6"));
  EXPECT_TRUE(holds("seq % (2*ranks) == 0"));
}

TEST(Constraint, DetectsOverflowOf64Bits) {
  EXPECT_TRUE(holds("4G*1G + (4G*1G - 1) > 0"));  // 2^63 - 1
  EXPECT_EQ(constraint_refusal("4G*1G + 4G*1G > 0"), "6: '+' exceeds 64 bits at a point; use smaller numbers");
  EXPECT_EQ(constraint_refusal("8G*1G > 0"), "2: '*' exceeds 64 bits at a point; use smaller numbers");
  EXPECT_TRUE(holds("4G*1G > 0"));
  const std::string least = "(-4G*1G - 4G*1G)";  // -2^63
  EXPECT_TRUE(holds(least + " < 0"));
  EXPECT_EQ(constraint_refusal(least + " - 1 < 0"), "17: '-' exceeds 64 bits at a point; use smaller numbers");
  EXPECT_EQ(constraint_refusal(least + "/-1 < 0"), "16: '/' exceeds 64 bits at a point; use smaller numbers");
  EXPECT_EQ(constraint_refusal("0 - " + least + " > 0"), "2: '-' exceeds 64 bits at a point; use smaller numbers");
}

TEST(Constraint, MistakesNameTheirColumn) {
  const std::string example_text = "as in \"batch*seq == 128K\"";
  EXPECT_EQ(constraint_refusal(""), "0: it ends where a number or a setting is expected; complete it, " + example_text);
  EXPECT_EQ(constraint_refusal("seq"),
            "3: it ends without a comparison; add one of ==, !=, <, <=, >, >=, " + example_text);
  EXPECT_EQ(constraint_refusal("seq = 4"),
            "4: '=' is not a comparison; write one of ==, !=, <, <=, >, >=, " + example_text);
  EXPECT_EQ(constraint_refusal("seq \u2264 4"),
            "4: '\u2264' is not a comparison; write one of ==, !=, <, <=, >, >=, " + example_text);
  EXPECT_EQ(constraint_refusal("2 \u00d7 seq == 4"),
            "2: '\u00d7' is not a comparison; write one of ==, !=, <, <=, >, >=, " + example_text);
  EXPECT_EQ(constraint_refusal("\u03c0 == 4"),
            "0: '\u03c0' is neither a number nor a setting; write one, " + example_text);
  EXPECT_EQ(constraint_refusal("seq == 4 == 4"),
            "9: '== 4' is not expected here; compare two sums once, " + example_text);
  EXPECT_EQ(constraint_refusal("sqe == 4"), "0: unknown setting 'sqe'; did you mean 'seq'?");
  EXPECT_EQ(constraint_refusal("1 + slices == 4"), "4: unknown setting 'slices'; did you mean 'strategy.slices'?");
  EXPECT_EQ(constraint_refusal("threads == 4"),
            "0: 'threads' is not a numeric setting; known numbers: " + test::known_numbers());
  EXPECT_EQ(constraint_refusal("strategy.slices == 4"),
            "0: 'strategy.slices' has no value at a point; set it, as in strategy.slices: 4");
  EXPECT_EQ(constraint_refusal("seq / 0 == 4"), "4: '/' divides by 0 at a point; change the divisor");
  EXPECT_EQ(constraint_refusal("seq % (ranks - 8) == 4"), "4: '%' divides by 0 at a point; change the divisor");
  EXPECT_EQ(constraint_refusal("4KB == 4"), "0: '4KB' is not a whole number; write one, such as 4K");
  EXPECT_EQ(constraint_refusal("(seq == 4"), "5: ')' is missing; close the parenthesis");
  EXPECT_EQ(constraint_refusal(std::string(100, '(')).substr(0, 24), "64: more than 64 nested ");
}

TEST(Constraint, NoTextBreaksTheParser) {
  std::mt19937 random(1);
  const std::string letters = "seq batch()*/%+-=<>!1K. ";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto length = random() % 24; length > 0; --length) {
      text += letters[random() % letters.size()];
    }
    const std::string outcome = constraint_refusal(text);
    EXPECT_TRUE(outcome == "accepted" || outcome.find("; ") != std::string::npos) << text << " -> " << outcome;
  }
}

}  // namespace
}  // namespace commfuse
