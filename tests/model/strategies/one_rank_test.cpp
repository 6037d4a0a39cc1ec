// SPDX-License-Identifier: Apache-2.0
// Tests that a single rank, which has no peers, exchanges no data in any schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "model/proof/check_program.h"
#include "tests/model/strategies/schedules_of_scope.h"

namespace commfuse {
namespace {

bool communicates(const Program& program) {
  return std::any_of(program.shapes.begin(), program.shapes.end(), [](const Shape& shape) {
    return std::holds_alternative<CollectiveShape>(shape) || std::holds_alternative<ExchangeShape>(shape);
  });
}

TEST(OneRank, ExchangesNothingInAnySchedule) {
  for (const Scope scope : all_scopes) {
    for (const Program& program : schedules_of(scope, 1)) {
      EXPECT_FALSE(communicates(program)) << program.name;
      EXPECT_TRUE(check_program(program).ok()) << program.name;
    }
  }
}

TEST(OneRank, DoesOnlyTheWorkOfTheGemms) {
  // Nothing is cut or copied for a transfer that does not exist.
  for (const Scope scope : {Scope::qkv, Scope::down, Scope::qkv_backward, Scope::down_backward, Scope::fsdp_gate_up}) {
    for (const char* name : {"serial", "sliced"}) {
      const Strategy& strategy = *find_strategy(name);
      const Program uncut = generate(operation_of(scope, true), 1, strategy, {.slices = 1});
      const Program sliced = generate(operation_of(scope, true), 1, strategy, {.slices = 4});
      EXPECT_EQ(uncut.ops.size(), sliced.ops.size()) << name;
    }
  }
}

}  // namespace
}  // namespace commfuse
