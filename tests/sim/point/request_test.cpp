// SPDX-License-Identifier: Apache-2.0
// Tests which schedules are candidates for a point's settings.
#include "sim/point/request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sim/grid_of.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

std::vector<StrategyOptions> schedules_with(std::vector<std::string> sets) {
  sets.insert(sets.end(), {"strategy.name=commfuse", "hardware=dgx-h100-x2", "ranks=16"});
  return candidates_of(test::settings_of(sets)).at(0).options;
}

bool are_nested(const StrategyOptions& options) { return options.inner > 1; }

TEST(Request, SchedulesHaveTheCutOfAttentionThatIsSet) {
  const auto uncut = schedules_with({"scope=attention", "strategy.attention=whole"});
  EXPECT_TRUE(std::ranges::any_of(uncut, are_nested));
  const auto cut = schedules_with({"scope=attention", "strategy.attention=by_query"});
  EXPECT_FALSE(cut.empty());
  for (const StrategyOptions& schedule : cut) {
    EXPECT_EQ(schedule.attention, AttentionCut::by_query);
  }
  // A scope without attention has nested rings whatever the cut.
  EXPECT_EQ(schedules_with({"scope=mlp", "strategy.attention=by_query"}), schedules_with({"scope=mlp"}));
  EXPECT_TRUE(std::ranges::any_of(schedules_with({"scope=mlp"}), are_nested));
}

TEST(Request, NestedRingsRefuseACutOfAttention) {
  const std::string refusal =
      "strategy.inner is 8 and strategy.attention is by_query, but nested rings of commfuse do not cut attention; "
      "remove "
      "one of them";
  const std::vector<std::string> both{"strategy.inner=8", "strategy.attention=by_query"};
  const auto with = [&](const std::string& scope, const std::string& more) {
    std::vector<std::string> sets = both;
    sets.insert(sets.end(), {scope, more});
    return sets;
  };
  for (const char* const scope : {"scope=attention", "scope=layer"}) {
    EXPECT_EQ(test::message_of([&] { schedules_with(with(scope, "seq=4K")); }), refusal);
    EXPECT_EQ(test::message_of([&] { schedules_with(with(scope, "strategy.form=ring")); }), refusal);
    for (const StrategyOptions& schedule : schedules_with(with(scope, "strategy.form=direct"))) {
      EXPECT_EQ(schedule.attention, AttentionCut::by_query);
    }
  }
  // A scope without attention has nothing to cut.
  EXPECT_FALSE(schedules_with(with("scope=mlp", "seq=4K")).empty());
  std::vector<std::string> shown = with("scope=attention", "strategy.name=commfuse");
  shown.insert(shown.end(), {"hardware=dgx-h100-x2", "ranks=16"});
  EXPECT_EQ(test::message_of([&] { plain_candidates_of(test::settings_of(shown)); }), refusal);
}

}  // namespace
}  // namespace commfuse
