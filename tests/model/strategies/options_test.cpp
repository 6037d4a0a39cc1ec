// SPDX-License-Identifier: Apache-2.0
// Tests the list of options: those that strategies share, and those of a single strategy.
#include "model/strategies/options.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/strategies/strategies.h"

namespace commfuse {
namespace {

TEST(Options, AreListedInTheSameOrderInEveryVersion) {
  std::vector<std::string_view> names;
  for (const Option option : all_options()) {
    names.push_back(name_of(option));
  }
  EXPECT_EQ(names,
            (std::vector<std::string_view>{"slices", "sub_slices", "form", "add_lane", "sum", "lanes", "directions",
                                           "group", "inner", "attention", "shuffles", "regather"}));
}

TEST(Options, KeepEveryValueAsText) {
  for (const Option option : all_options()) {
    SCOPED_TRACE(name_of(option));
    std::vector<std::string> values{"1", "7", "1024"};
    if (!is_count(option)) {
      const std::vector<std::string_view> words = words_of(option);
      values.assign(words.begin(), words.end());
      EXPECT_EQ(text_of(option, {}), words.front());
    }
    for (const std::string& value : values) {
      StrategyOptions options;
      put(option, value, options);
      EXPECT_EQ(text_of(option, options), value);
      StrategyOptions copied;
      copy(option, options, copied);
      EXPECT_EQ(copied, options);
      EXPECT_EQ(options == StrategyOptions{}, value == text_of(option, {}));
    }
  }
}

TEST(Options, AreFoundByName) {
  EXPECT_EQ(option_named("slices"), Option::slices);
  EXPECT_EQ(option_named("strategy.slices"), std::nullopt);
  EXPECT_EQ(&entry_of(*option_named("shuffles")), &find_strategy("sliced")->own_options.front());
}

TEST(Options, AreTakenOnlyByTheirOwnStrategy) {
  const Option shuffles = *option_named("shuffles");
  for (const Strategy& strategy : strategies()) {
    EXPECT_EQ(strategy.takes(shuffles), strategy.name == "sliced") << strategy.name;
  }
}

TEST(Options, ShufflesMatterOnlyIfAttentionIsNotCut) {
  const Strategy& sliced = *find_strategy("sliced");
  const Option shuffles = *option_named("shuffles");
  constexpr std::array attends{SiteKind::attention_rs};
  EXPECT_TRUE(relevant_options(sliced, attends, {.slices = 2}).has(shuffles));
  EXPECT_FALSE(relevant_options(sliced, attends, {.slices = 2, .attention = AttentionCut::by_query}).has(shuffles));
}

}  // namespace
}  // namespace commfuse
