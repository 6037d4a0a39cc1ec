// SPDX-License-Identifier: Apache-2.0
// Tests which schedules are candidates for a point's settings.
#include "sim/point/request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sim/grid_of.h"

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

}  // namespace
}  // namespace commfuse
