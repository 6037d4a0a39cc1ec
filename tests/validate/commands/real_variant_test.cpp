// SPDX-License-Identifier: Apache-2.0
// Tests the options of ranks that are threads, for commands that measure.
#include "validate/commands/real_variant.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;

TEST(RealVariant, AnOpOfManyMinutesIsNotGivenUp) {
  EXPECT_GE(real_work({}).patience, 24h);
  EXPECT_FALSE(real_work({}).pace.has_value());
  const Pace pace{.latency = 2us, .bandwidth = {1e9}};
  EXPECT_EQ(real_work(pace).pace.value_or(Pace{}).latency, 2us);
}

}  // namespace
}  // namespace commfuse::validate
