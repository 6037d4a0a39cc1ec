// SPDX-License-Identifier: Apache-2.0
#include "model/cost/draw_keys.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"

namespace commfuse {
namespace {

struct Keyed {
  explicit Keyed(const char* strategy, Scope scope = Scope::mlp, const StrategyOptions& options = {})
      : program(generate(operation_of(scope, true), Mesh{{{"tp", 4}}}, 0, *find_strategy(strategy), options)),
        keys(draw_keys(program)) {}

  /// Returns the keys of ops of a purpose, in program order.
  [[nodiscard]] std::vector<DrawKey> of(Purpose purpose) const {
    std::vector<DrawKey> chosen_keys;
    for (std::size_t op = 0; op < keys.size(); ++op) {
      if (program.ops[op].purpose == purpose) {
        chosen_keys.push_back(keys[op]);
      }
    }
    return chosen_keys;
  }

  Program program;
  std::vector<DrawKey> keys;
};

DrawKey essential(std::uint32_t work, std::uint32_t step) { return {.step = step, .purpose = 4 * work}; }

TEST(DrawKeys, TheGemmOfSerialAndTheFirstPartOfCommfuseShareADraw) {
  // The unfused work of an MLP has three parts: gate_up, activation, down.
  const std::vector<DrawKey> whole{essential(0, 0), essential(1, 0), essential(2, 0)};
  EXPECT_EQ(Keyed("serial").of(Purpose::essential), whole);
  const std::vector<DrawKey> parts{essential(0, 0), essential(0, 1), essential(0, 2), essential(0, 3), essential(1, 0),
                                   essential(2, 0), essential(2, 1), essential(2, 2), essential(2, 3)};
  EXPECT_EQ(Keyed("commfuse").of(Purpose::essential), parts);
}

TEST(DrawKeys, CommunicationAndLocalOpsAreNumberedSeparately) {
  const Keyed keyed("commfuse", Scope::down);
  std::uint32_t step = 0;
  for (const DrawKey& key : keyed.of(Purpose::communication)) {
    EXPECT_EQ(key, (DrawKey{.step = step++, .purpose = 2}));
  }
  EXPECT_EQ(step, 3U);
  step = 0;
  for (const DrawKey& key : keyed.of(Purpose::local)) {
    EXPECT_EQ(key, (DrawKey{.step = step++, .purpose = 1}));
  }
  EXPECT_EQ(step, 3U);
}

// Two MLPs in sequence: parts 0 to 2 of the work belong to the first, 3 to 5 to the second. Partial sums alternate
// between two buffers, so only the weights show to which of the similar parts a GEMM belongs.
TEST(DrawKeys, SimilarWorkIsDistinguishedByItsWeights) {
  Operation twice = operation_of(Scope::mlp, true);
  const std::size_t stages = twice.stages.size();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    twice.stages.push_back(twice.stages[stage]);
    twice.stages.back().name = "second." + twice.stages.back().name;
  }
  for (const char* strategy : {"serial", "sliced", "commfuse"}) {
    const Program program = generate(twice, Mesh{{{"tp", 4}}}, 0, *find_strategy(strategy), {});
    ASSERT_EQ(program.unfused.size(), 6U);
    const std::vector<DrawKey> keys = draw_keys(program);
    for (std::size_t op = 0; op < keys.size(); ++op) {
      if (program.ops[op].kind == OpKind::gemm) {
        const Slice weight = program.inputs_of(program.ops[op])[1];
        const std::string& name = program.buffers[position(program.regions_of(weight).front().buffer)].name;
        EXPECT_EQ(keys[op].purpose / 4 >= 3, name.starts_with("second")) << program.name << " " << name;
      }
    }
  }
}

TEST(DrawKeys, NoTwoKernelsOfAProgramShareADraw) {
  for (const Strategy& strategy : strategies()) {
    for (const Scope scope : all_scopes) {
      if (!applies(strategy, kinds_of(scope))) {
        continue;
      }
      const Program program = generate(operation_of(scope, true), Mesh{{{"tp", 4}}}, 0, strategy, {});
      std::set<std::pair<std::uint32_t, std::uint32_t>> used_draws;
      for (const DrawKey& key : draw_keys(program)) {
        EXPECT_NE(used_draws.insert({key.purpose, key.step}).second, !key.can_stall) << program.name;
        EXPECT_NE(key.draw(), Draw::rank);
      }
    }
  }
}

TEST(DrawKeys, ThePartsOfAKernelShareItsDrawAndStallOnce) {
  for (const Scope scope : {Scope::gate_up, Scope::down_ar}) {  // cut by rows, and by columns
    const std::vector<DrawKey> parts = Keyed("fused_kernel", scope).of(Purpose::essential);
    ASSERT_GT(parts.size(), 1U);
    EXPECT_TRUE(parts.front().can_stall);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i], (DrawKey{.step = 0, .purpose = 0, .can_stall = false}));
    }
  }
}

}  // namespace
}  // namespace commfuse
