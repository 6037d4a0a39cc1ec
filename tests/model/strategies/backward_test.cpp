// SPDX-License-Identifier: Apache-2.0
// Tests schedules of backward passes: they are proved on many rank counts, compared with their pictures, and every
// small mistake in them is caught.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "model/program_text/step_table.h"
#include "tests/model/strategies/golden_text.h"
#include "tests/model/strategies/schedules_of_scope.h"

namespace commfuse {
namespace {

constexpr std::array backward_scopes{Scope::qkv_backward, Scope::out_proj_backward, Scope::gate_up_backward,
                                     Scope::down_backward};

TEST(Backward, HasTheseSchedules) {
  EXPECT_EQ(names(schedules_of(Scope::gate_up_backward, 4)),
            (std::vector<std::string>{
                "serial gate_up_backward", "serial (x saved) gate_up_backward", "sliced gate_up_backward",
                "sliced (x saved) gate_up_backward", "looped_einsum gate_up_backward",
                "looped_einsum (x saved) gate_up_backward", "async_tp gate_up_backward",
                "async_tp (x saved) gate_up_backward", "ring_exchange gate_up_backward",
                "ring_exchange (x saved) gate_up_backward", "commfuse (ring) gate_up_backward",
                "commfuse (ring, x saved) gate_up_backward", "commfuse (ring, add on aux) gate_up_backward",
                "commfuse (ring, add on aux, x saved) gate_up_backward", "commfuse (direct) gate_up_backward",
                "commfuse (direct, x saved) gate_up_backward"}));
  EXPECT_EQ(names(schedules_of(Scope::down_backward, 4)),
            (std::vector<std::string>{
                "serial down_backward", "sliced (k=1) down_backward", "sliced (k=2) down_backward",
                "sliced (k=4) down_backward", "sliced (k=8) down_backward", "looped_einsum down_backward",
                "async_tp down_backward", "ring_exchange (g=1) down_backward", "ring_exchange (g=2) down_backward",
                "ring_exchange (g=3) down_backward", "commfuse (ring) down_backward",
                "commfuse (ring, dw by shard) down_backward", "commfuse (direct) down_backward",
                "commfuse (direct, dw by shard) down_backward"}));
}

TEST(Backward, EveryScheduleIsProvedAndReadsBack) { expect_proved_and_read_back(backward_scopes); }

// The tests below compare step tables for N = 4. The golden texts were checked by hand, cell by cell, against the
// pictures of fuse_ag_gemm_backward.cpp and fuse_gemm_rs_backward.cpp.
std::string commfuse_backward_table(Scope scope, const StrategyOptions& options) {
  return step_table(generate(operation_of(scope, true), 4, commfuse_strategy, options));
}

TEST(Backward, ColumnRingAlternatesWithItsGatherUntilTheLastStep) {
  const std::string table = commfuse_backward_table(Scope::qkv_backward, {});
  EXPECT_EQ(table, golden_text("fuse_ag_gemm_backward_ring.txt", table));
}

TEST(Backward, ColumnRingWithAddsOnAuxScattersDuringTheGradient) {
  const std::string table = commfuse_backward_table(Scope::qkv_backward, {.add_lane = LaneKind::aux});
  EXPECT_EQ(table, golden_text("fuse_ag_gemm_backward_ring_aux.txt", table));
}

TEST(Backward, ColumnDirectGathersFirstAndScattersDuringTheGradient) {
  const std::string table = commfuse_backward_table(Scope::qkv_backward, {.form = Form::direct});
  EXPECT_EQ(table, golden_text("fuse_ag_gemm_backward_direct.txt", table));
}

TEST(Backward, RowRingGathersDuringTheGemmsAndEndsWithTheGradient) {
  const std::string table = commfuse_backward_table(Scope::down_backward, {});
  EXPECT_EQ(table, golden_text("fuse_gemm_rs_backward_ring.txt", table));
}

TEST(Backward, RowRingUsesEveryReceivedShardInTwoGemms) {
  const std::string table = commfuse_backward_table(Scope::down_backward, {.sum = Sum::arrival});
  EXPECT_EQ(table, golden_text("fuse_gemm_rs_backward_ring_by_shard.txt", table));
}

/// Expects the step table of another project's schedule to equal the golden text, which was checked by hand against the
/// picture in the strategy's file.
void expect_backward_table(Scope scope, const char* strategy, const StrategyOptions& options, const char* golden) {
  SCOPED_TRACE(golden);
  const std::string table = step_table(generate(operation_of(scope, true), 4, *find_strategy(strategy), options));
  EXPECT_EQ(table, golden_text(golden, table));
}

TEST(Backward, LoopedEinsumRunsOneLoopAfterTheOther) {
  expect_backward_table(Scope::qkv_backward, "looped_einsum", {}, "looped_einsum_ag_gemm_backward.txt");
  expect_backward_table(Scope::down_backward, "looped_einsum", {}, "looped_einsum_gemm_rs_backward.txt");
}

TEST(Backward, AsyncTpGathersForTheGradientAfterItsScatter) {
  expect_backward_table(Scope::qkv_backward, "async_tp", {}, "async_tp_ag_gemm_backward.txt");
  expect_backward_table(Scope::down_backward, "async_tp", {}, "async_tp_gemm_rs_backward.txt");
}

TEST(Backward, RingExchangeKeepsReceivedShardsForTheGradient) {
  expect_backward_table(Scope::qkv_backward, "ring_exchange", {}, "ring_exchange_ag_gemm_backward.txt");
  expect_backward_table(Scope::down_backward, "ring_exchange", {}, "ring_exchange_gemm_rs_backward.txt");
  expect_backward_table(Scope::down_backward, "ring_exchange", {.group = 2},
                        "ring_exchange_gemm_rs_backward_pairs.txt");
}

TEST(Backward, EverySmallMistakeIsCaughtOrProvedHarmless) {
  expect_no_mutant_survives(std::array{Scope::gate_up_backward, Scope::down_backward});
}

}  // namespace
}  // namespace commfuse
