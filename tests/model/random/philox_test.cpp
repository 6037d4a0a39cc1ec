// SPDX-License-Identifier: Apache-2.0
#include "model/random/philox.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

// These are the three lines "philox4x32 10" of tests/kat_vectors in Random123.
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryWordOfCounterAndKeyMatters) {
  const PhiloxWords plain = philox({1, 2, 3, 4}, 5);
  for (std::size_t word = 0; word < 4; ++word) {
    PhiloxWords counter{1, 2, 3, 4};
    counter[word] ^= 0x80000000;
    EXPECT_NE(philox(counter, 5), plain) << word;
  }
  EXPECT_NE(philox({1, 2, 3, 4}, 4), plain);
  EXPECT_NE(philox({1, 2, 3, 4}, 5 | (std::uint64_t{1} << 63)), plain);
}

TEST(Philox, RunsAtCompileTime) { static_assert(philox({0, 0, 0, 0}, 0)[0] == 0x6627e8d5); }

}  // namespace
}  // namespace commfuse
