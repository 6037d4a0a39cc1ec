// SPDX-License-Identifier: Apache-2.0
#include "model/text/suggest.h"

#include <gtest/gtest.h>

#include <array>

namespace commfuse {
namespace {

constexpr std::array<std::string_view, 3> keys{"bandwidth", "latency", "rate"};

TEST(EditDistance, CountsInsertedDeletedReplacedAndSwappedLetters) {
  EXPECT_EQ(edit_distance("latency", "latency"), 0u);
  EXPECT_EQ(edit_distance("latncy", "latency"), 1u);
  EXPECT_EQ(edit_distance("latenccy", "latency"), 1u);
  EXPECT_EQ(edit_distance("lateney", "latency"), 1u);
  EXPECT_EQ(edit_distance("latecny", "latency"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "rate"), 4u);
}

TEST(EditDistance, IgnoresCase) { EXPECT_EQ(edit_distance("LATENCY", "latency"), 0u); }

TEST(Nearest, FindsTheIntendedWord) {
  EXPECT_EQ(nearest("latncy", keys), "latency");
  EXPECT_EQ(nearest("Bandwith", keys), "bandwidth");
}

TEST(Nearest, ReturnsNothingWhenNoWordIsNear) {
  EXPECT_EQ(nearest("colour", keys), std::nullopt);
  EXPECT_EQ(nearest("", keys), std::nullopt);
  EXPECT_EQ(nearest(std::string(100'000, 'x'), keys), std::nullopt);
}

TEST(Nearest, TakesTheFirstOfTwoEquallyNear) {
  constexpr std::array<std::string_view, 2> two{"rank", "rang"};
  EXPECT_EQ(nearest("rant", two), "rank");
}

TEST(Nearest, DoesNotOfferAOneLetterWordForAnother) {
  constexpr std::array<std::string_view, 1> letters{"m"};
  EXPECT_EQ(nearest("k", letters), std::nullopt);
}

TEST(RemedyFor, OffersTheNearestWordOrListsAll) {
  EXPECT_EQ(remedy_for("latncy", keys, "keys"), "did you mean 'latency'?");
  EXPECT_EQ(remedy_for("colour", keys, "keys"), "known keys: bandwidth, latency, rate");
  EXPECT_EQ(remedy_for("colour", {}, "keys"), "no keys are defined");
}

TEST(InQuotes, KeepsAMessageOnOneLineAndShort) {
  EXPECT_EQ(in_quotes("a\nb\x1b[31m"), "'a\\x0ab\\x1b[31m'");
  EXPECT_EQ(in_quotes("a\u009b31m\u202eb\u2066"), "'a\\xc2\\x9b31m\\xe2\\x80\\xaeb\\xe2\\x81\\xa6'");
  EXPECT_EQ(in_quotes(std::string(61, 'a')), "'" + std::string(60, 'a') + "...'");
  EXPECT_EQ(in_quotes(std::string(59, 'a') + "\u00e9b"), "'" + std::string(59, 'a') + "...'");
  EXPECT_EQ(in_quotes(std::string(58, 'a') + "\u00e9b"), "'" + std::string(58, 'a') + "\u00e9...'");
}

}  // namespace
}  // namespace commfuse
