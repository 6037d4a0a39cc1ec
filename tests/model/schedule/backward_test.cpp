// SPDX-License-Identifier: Apache-2.0
// The schedules of the backward passes: proved on many rank counts, read beside their pictures, and every small mistake
// in them found.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "model/schedule/check_program.h"
#include "model/schedule/mutate.h"
#include "model/schedule/scope.h"
#include "model/schedule/step_table.h"
#include "model/schedule/text.h"
#include "tests/model/schedule/golden_text.h"

namespace commfuse {
namespace {

constexpr std::array backward_scopes{Scope::qkv_backward, Scope::out_proj_backward, Scope::gate_up_backward,
                                     Scope::down_backward};

std::vector<Program> schedules_of(Scope scope, std::int32_t ranks) {
  std::vector<Program> programs;
  for (const Strategy& strategy : strategies()) {
    for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(scope), ranks)) {
      programs.push_back(generate(operation_of(scope, true), ranks, strategy, options));
    }
  }
  return programs;
}

std::vector<std::string> names(const std::vector<Program>& programs) {
  std::vector<std::string> all;
  for (const Program& program : programs) {
    all.push_back(program.name);
  }
  return all;
}

TEST(Backward, HasTheseSchedules) {
  EXPECT_EQ(names(schedules_of(Scope::gate_up_backward, 4)),
            (std::vector<std::string>{
                "serial gate_up_backward", "serial (x saved) gate_up_backward", "sliced gate_up_backward",
                "sliced (x saved) gate_up_backward", "commfuse (ring) gate_up_backward",
                "commfuse (ring, x saved) gate_up_backward", "commfuse (ring, add on aux) gate_up_backward",
                "commfuse (ring, add on aux, x saved) gate_up_backward", "commfuse (direct) gate_up_backward",
                "commfuse (direct, x saved) gate_up_backward"}));
  EXPECT_EQ(
      names(schedules_of(Scope::down_backward, 4)),
      (std::vector<std::string>{"serial down_backward", "sliced (k=1) down_backward", "sliced (k=2) down_backward",
                                "sliced (k=4) down_backward", "sliced (k=8) down_backward",
                                "commfuse (ring) down_backward", "commfuse (ring, dw by shard) down_backward",
                                "commfuse (direct) down_backward", "commfuse (direct, dw by shard) down_backward"}));
}

TEST(Backward, EveryScheduleIsProvedAndReadsBack) {
  for (const std::int32_t ranks : {1, 2, 3, 4, 5, 7, 8, 16}) {
    for (const Scope scope : backward_scopes) {
      for (const Program& program : schedules_of(scope, ranks)) {
        EXPECT_EQ(check_program(program).findings.size(), 0U) << program.name << ", " << ranks << " ranks";
        EXPECT_EQ(parse_program(to_text(program), program.name), program) << program.name << ", " << ranks << " ranks";
      }
    }
  }
}

// Step tables for N = 4; the golden texts were checked by hand, cell by cell, against the pictures of
// fuse_ag_gemm_backward.cpp and fuse_gemm_rs_backward.cpp.
std::string fused(Scope scope, const StrategyOptions& options) {
  return step_table(generate(operation_of(scope, true), 4, *find_strategy("commfuse"), options));
}

TEST(Backward, ColumnRingTakesTurnsWithItsGatherAndLeavesTheLastStepToTheGradient) {
  const std::string table = fused(Scope::qkv_backward, {});
  EXPECT_EQ(table, golden_text("fuse_ag_gemm_backward_ring.txt", table));
}

TEST(Backward, ColumnRingWithAddsOnAuxGathersFirstAndScattersUnderTheGradient) {
  const std::string table = fused(Scope::qkv_backward, {.add_lane = LaneKind::aux});
  EXPECT_EQ(table, golden_text("fuse_ag_gemm_backward_ring_aux.txt", table));
}

TEST(Backward, ColumnDirectGathersFirstAndScattersUnderTheGradient) {
  const std::string table = fused(Scope::qkv_backward, {.form = Form::direct});
  EXPECT_EQ(table, golden_text("fuse_ag_gemm_backward_direct.txt", table));
}

TEST(Backward, RowRingGathersUnderTheProductsAndTakesTheGradientAtTheEnd) {
  const std::string table = fused(Scope::down_backward, {});
  EXPECT_EQ(table, golden_text("fuse_gemm_rs_backward_ring.txt", table));
}

TEST(Backward, RowRingFeedsTwoProductsWithEveryShardThatComes) {
  const std::string table = fused(Scope::down_backward, {.sum = Sum::arrival});
  EXPECT_EQ(table, golden_text("fuse_gemm_rs_backward_ring_by_shard.txt", table));
}

TEST(Backward, EverySmallMistakeIsCaughtOrProvedToBeNone) {
  int caught = 0;
  int harmless = 0;
  for (const std::int32_t ranks : {2, 3}) {
    for (const Scope scope : {Scope::gate_up_backward, Scope::down_backward}) {
      for (const Program& program : schedules_of(scope, ranks)) {
        for (const Mutation& mutation : mutations_of(program)) {
          const bool found = !check_program(mutation.program).ok();
          EXPECT_TRUE(found || equivalence_of(program, mutation.program, mutation.now))
              << program.name << ", " << ranks << " ranks, " << mutation.description;
          ++(found ? caught : harmless);
        }
      }
    }
  }
  EXPECT_GT(caught, 1000);
  EXPECT_LT(harmless, caught);  // lanes and order are often free
}

}  // namespace
}  // namespace commfuse
