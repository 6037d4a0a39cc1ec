// SPDX-License-Identifier: Apache-2.0
// Tests schedules of data parallelism with sharded weights: they are proved on many rank counts, and every small
// mistake is caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "model/program_text/step_table.h"
#include "model/program_text/text.h"
#include "tests/model/strategies/golden_text.h"
#include "tests/model/strategies/schedules_of_scope.h"

namespace commfuse {
namespace {

constexpr std::array scopes{Scope::fsdp_gate_up, Scope::data_parallel};

TEST(DataParallel, HasTheseSchedules) {
  EXPECT_EQ(names(schedules_of(Scope::fsdp_gate_up, 4)),
            (std::vector<std::string>{"serial fsdp_gate_up", "sliced (k=1) fsdp_gate_up", "sliced (k=2) fsdp_gate_up",
                                      "sliced (k=4) fsdp_gate_up", "sliced (k=8) fsdp_gate_up",
                                      "commfuse (ring) fsdp_gate_up", "commfuse (direct) fsdp_gate_up"}));
  EXPECT_EQ(names(schedules_of(Scope::data_parallel, 4)),
            (std::vector<std::string>{"serial data_parallel", "sliced (k=1) data_parallel",
                                      "sliced (k=2) data_parallel", "sliced (k=4) data_parallel",
                                      "sliced (k=8) data_parallel", "commfuse (ring) data_parallel",
                                      "commfuse (ring, add on aux) data_parallel", "commfuse (direct) data_parallel"}));
}

TEST(DataParallel, EveryScheduleIsProvedAndReadsBack) { expect_proved_and_read_back(scopes); }

TEST(DataParallel, RanksShareTheWeightsAndHaveTheirOwnTokens) {
  const Program program = schedules_of(Scope::fsdp_gate_up, 4).front();
  EXPECT_EQ(program.mesh, (Mesh{{{"dp", 4}}}));
  const std::string text = to_text(program);
  const auto contains = [&](std::string_view line) { return text.find(line) != std::string::npos; };
  EXPECT_TRUE(
      contains("  gate_up: {rows: tokens*4, columns: ffn*8, dtype: bf16, product: [x, gate_up.weight], "
               "transpose_b: true}\n"));
  EXPECT_TRUE(contains("  - {here: \"x\", tensor: x, row: \"dp\", column: \"0\"}\n"));
  EXPECT_TRUE(
      contains("  - {here: \"gate_up.weight[2*dp +: 2]\", tensor: gate_up.weight, row: \"2*dp\", column: \"0\"}\n"));
  EXPECT_TRUE(contains("  - {here: \"gate_up\", tensor: gate_up, row: \"dp\", column: \"0\"}\n"));
}

TEST(DataParallel, GradientsAreKeptAndSentInFp32) {
  for (const Program& program : schedules_of(Scope::data_parallel, 4)) {
    for (const Tensor& tensor : program.tensors) {
      EXPECT_EQ(tensor.dtype, tensor.transpose_a ? DType::fp32 : DType::bf16) << program.name << ": " << tensor.name;
    }
    const auto sends_fp32 = [&](const Shape& shape) {
      const auto* exchange = std::get_if<ExchangeShape>(&shape);
      const auto* collective = std::get_if<CollectiveShape>(&shape);
      return (exchange != nullptr && exchange->wire == DType::fp32) ||
             (collective != nullptr && collective->wire == DType::fp32 &&
              collective->kind == CollectiveKind::reduce_scatter);
    };
    EXPECT_TRUE(std::any_of(program.shapes.begin(), program.shapes.end(), sends_fp32)) << program.name;
  }
}

TEST(DataParallel, TwoRanksGatherAndScatterDuringTheNeighbouringLayer) {
  const std::string table =
      step_table(generate(operation_of(Scope::data_parallel, true), 2, commfuse_strategy, {.add_lane = LaneKind::aux}));
  EXPECT_EQ(table, golden_text("data_parallel_ring_aux.txt", table));
}

TEST(DataParallel, EverySmallMistakeIsCaughtOrProvedHarmless) { expect_no_mutant_survives(scopes); }

}  // namespace
}  // namespace commfuse
