// SPDX-License-Identifier: Apache-2.0
// Tests that docs/strategies.md has a section for every strategy, and a row that states what the strategy leaves
// exposed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "model/strategies/strategies.h"

namespace commfuse {
namespace {

TEST(StrategiesPage, ExplainsEveryStrategy) {
  std::ifstream file(COMMFUSE_SOURCE_DIR "/docs/strategies.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const Strategy& strategy : strategies()) {
    EXPECT_NE(text.find(fmt::format("\n## `{}`\n\n    ", strategy.name)), std::string::npos) << strategy.name;
    EXPECT_NE(text.find(fmt::format("\n| `{}` |", strategy.name)), std::string::npos) << strategy.name;
  }
}

}  // namespace
}  // namespace commfuse
