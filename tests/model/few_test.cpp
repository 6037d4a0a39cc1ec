// SPDX-License-Identifier: Apache-2.0
#include "model/few.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace commfuse {
namespace {

using FewWords = Few<std::string>;

std::vector<std::string> elements_of(const FewWords& words) { return {words.begin(), words.end()}; }

/// Returns lists of zero, one, two and three words.
std::vector<std::vector<std::string>> lists() { return {{}, {"a"}, {"a", "b"}, {"a", "b", "c"}}; }

TEST(Few, BehavesLikeAVector) {
  for (const std::vector<std::string>& list : lists()) {
    FewWords words = list;
    EXPECT_EQ(elements_of(words), list);
    EXPECT_EQ(words.size(), list.size());
    EXPECT_EQ(words.empty(), list.empty());
    std::vector<std::string> longer = list;
    for (const char* more : {"x", "y", "z"}) {
      words.push_back(more);
      longer.emplace_back(more);
      EXPECT_EQ(elements_of(words), longer);
      EXPECT_EQ(words.front(), longer.front());
      EXPECT_EQ(words.back(), longer.back());
      EXPECT_EQ(words[longer.size() - 1], longer.back());
    }
  }
}

TEST(Few, ACopyIsIndependent) {
  for (const std::vector<std::string>& list : lists()) {
    for (const std::vector<std::string>& before : lists()) {
      const FewWords words = list;
      FewWords copy = before;
      copy = words;
      EXPECT_EQ(copy, words);
      copy.push_back("more");
      EXPECT_NE(copy, words);
      EXPECT_EQ(elements_of(words), list);
    }
  }
}

TEST(Few, IsEmptyAfterAMove) {
  for (const std::vector<std::string>& list : lists()) {
    FewWords from = list;
    FewWords words = std::move(from);
    EXPECT_EQ(elements_of(words), list);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move): the test checks the moved-from state
    from.push_back("again");
    EXPECT_EQ(elements_of(from), std::vector<std::string>{"again"});
    words = std::move(from);
    EXPECT_EQ(elements_of(words), std::vector<std::string>{"again"});
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move)
  }
}

TEST(Few, CanBeRefilledAfterClear) {
  for (const std::vector<std::string>& list : lists()) {
    FewWords words = list;
    words.clear();
    EXPECT_TRUE(words.empty());
    const std::vector<std::string> two_words{"x", "y"};
    words.insert(words.end(), two_words.data(), two_words.data() + 2);
    EXPECT_EQ(elements_of(words), two_words);
  }
}

TEST(Few, ComparesByElements) {
  EXPECT_EQ((FewWords{"a"}), (FewWords{"a"}));
  EXPECT_NE((FewWords{"a"}), (FewWords{"b"}));
  EXPECT_NE((FewWords{"a"}), (FewWords{}));
  EXPECT_NE((FewWords{"a", "b"}), (FewWords{"a", "c"}));
  EXPECT_NE((FewWords{"a", "b"}), (FewWords{"a"}));
}

}  // namespace
}  // namespace commfuse
