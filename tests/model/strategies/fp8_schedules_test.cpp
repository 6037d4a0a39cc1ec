// SPDX-License-Identifier: Apache-2.0
// Tests the dtypes in schedules of fp8 layers: GEMMs multiply in fp8, and sums over ranks have 16 bits or more.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "model/program_text/text.h"
#include "model/proof/check_program.h"
#include "model/strategies/scope.h"

namespace commfuse {
namespace {

std::vector<Program> fp8_schedules_of(Scope scope, std::int32_t ranks) {
  std::vector<Program> programs;
  for (const Strategy& strategy : strategies()) {
    for (StrategyOptions options : schedules_to_prove(strategy, kinds_of(scope), ranks)) {
      options.dtype = DType::fp8;
      programs.push_back(generate(operation_of(scope, true), ranks, strategy, options));
    }
  }
  return programs;
}

bool adds(CollectiveKind kind) { return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce; }

/// Returns the buffers that additions read or write, and those of partial and complete sums of collectives.
std::set<BufferId> buffers_of_sums(const Program& program) {
  std::set<BufferId> sums;
  for (const Op& op : program.ops) {
    const auto* map = std::get_if<ElementwiseShape>(&program.shapes[op.shape]);
    const auto* collective = std::get_if<CollectiveShape>(&program.shapes[op.shape]);
    const bool gathers_sums =
        collective != nullptr && sums.contains(program.regions_of(program.inputs_of(op).front()).front().buffer);
    if ((map != nullptr && (map->function == Function::add || map->function == Function::residual)) ||
        (collective != nullptr && adds(collective->kind)) || gathers_sums) {
      for (const auto& operands : {program.inputs_of(op), program.outputs_of(op)}) {
        for (const Slice& operand : operands) {
          for (const Region& region : program.regions_of(operand)) {
            sums.insert(region.buffer);
          }
        }
      }
    }
  }
  return sums;
}

void expect_wide_sums(const Program& program) {
  const std::set<BufferId> sums = buffers_of_sums(program);
  for (const BufferId sum : sums) {
    EXPECT_NE(program.buffers[position(sum)].dtype, DType::fp8)
        << program.name << ", " << program.buffers[position(sum)].name;
  }
  const auto holds_sums = [&](std::span<const Slice> operands) {
    return !operands.empty() && sums.contains(program.regions_of(operands.front()).front().buffer);
  };
  const auto moves_sums = [&](const Op& op) {
    return holds_sums(program.inputs_of(op)) || holds_sums(program.outputs_of(op));
  };
  for (const Op& op : program.ops) {
    const Shape& shape = program.shapes[op.shape];
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      EXPECT_EQ(gemm->dtype, DType::fp8) << program.name;
    } else if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
      EXPECT_EQ(collective->wire == DType::fp8, !moves_sums(op)) << program.name;
    } else if (const auto* exchange = std::get_if<ExchangeShape>(&shape);
               exchange != nullptr && exchange->rows.blocks > 0) {
      EXPECT_EQ(exchange->wire == DType::fp8, !moves_sums(op)) << program.name;
    }
  }
}

TEST(Fp8Schedules, SumOverRanksIn16BitsAndMoveAllElseIn8) {
  for (const std::int32_t ranks : {1, 4}) {
    for (const Scope scope : all_scopes) {
      for (const Program& program : fp8_schedules_of(scope, ranks)) {
        expect_wide_sums(program);
      }
    }
  }
}

TEST(Fp8Schedules, AreProvedAndReadBack) {
  for (const std::int32_t ranks : {1, 3, 4}) {
    for (const Scope scope : all_scopes) {
      for (const Program& program : fp8_schedules_of(scope, ranks)) {
        EXPECT_TRUE(check_program(program).ok()) << program.name << ", " << ranks << " ranks";
        EXPECT_EQ(parse_program(to_text(program), program.name), program) << program.name << ", " << ranks << " ranks";
      }
    }
  }
}

TEST(Fp8Schedules, CountTheOutputOfARowParallelGemmIn16Bits) {
  const auto out_of = [](Scope scope, DType dtype) {
    const Program program = generate(operation_of(scope, true), 4, *find_strategy("serial"), {.dtype = dtype});
    return std::get<GemmShape>(program.unfused.front()).out;
  };
  EXPECT_EQ(out_of(Scope::down, DType::fp8), DType::bf16);
  EXPECT_EQ(out_of(Scope::gate_up_backward, DType::fp8), DType::bf16);
  EXPECT_EQ(out_of(Scope::gate_up, DType::fp8), std::nullopt);
  EXPECT_EQ(out_of(Scope::down, DType::bf16), std::nullopt);
}

}  // namespace
}  // namespace commfuse
