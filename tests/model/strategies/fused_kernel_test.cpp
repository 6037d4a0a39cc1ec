// SPDX-License-Identifier: Apache-2.0
// Tests how a fused kernel cuts a GEMM and its all-reduce: by columns of the sums, for any number of tokens.
#include <gtest/gtest.h>

#include <string>

#include "model/program_text/text.h"
#include "model/proof/check_program.h"
#include "model/strategies/scope.h"
#include "model/workload/bare_mlp.h"

namespace commfuse {
namespace {

Program down_ar(std::int32_t ranks, std::int32_t blocks) {
  return generate(operation_of(Scope::down_ar, false), ranks, fused_kernel_strategy, {.sub_slices = blocks});
}

/// Returns the ops in the text of a program.
std::string ops_of(const Program& program) {
  const std::string text = to_text(program);
  return text.substr(text.find("\nops:\n") + 1);
}

/// Returns the reason why sizes cannot be bound.
std::string refusal_at(const Program& program, std::int64_t tokens, std::int64_t hidden) {
  return refusal_of(program, quantities_of(bare_mlp({.hidden = hidden, .ffn = 28672}), {.seq = tokens}));
}

// Two ranks and two blocks: columns 0 and 1 are rank 0's shard, columns 2 and 3 rank 1's.
TEST(FusedKernel, AddsUpAndPassesOnOneBlockOfColumnsOfEveryShardAfterAnother) {
  EXPECT_EQ(ops_of(down_ar(2, 2)),
            R"(ops:
  - {id: 0, op: gemm, lane: compute, kernel_n: hidden*4, a: "x", b: "down.weight[0, 2*((tp+1)%2)]", out: "down.partial[0]"}
  - {id: 1, op: exchange, lane: kernel, axis: tp, shift: 1, wire: bf16, send: "down.partial[0]", receive: "down.received[0]", waits: [0]}
  - {id: 2, op: gemm, lane: compute, kernel_n: hidden*4, a: "x", b: "down.weight[0, 2*tp]", out: "down.partial[2]"}
  - {id: 3, op: elementwise, lane: kernel, function: add, in: ["down.partial[2]", "down.received[0]"], out: "down[0, 2*tp]", waits: [2]}
  - {id: 4, op: exchange, lane: kernel, axis: tp, shift: 1, wire: bf16, send: "down[0, 2*tp]", receive: "down[0, 2*((tp+1)%2)]"}
  - {id: 5, op: gemm, lane: compute, kernel_n: hidden*4, a: "x", b: "down.weight[0, 2*((tp+1)%2)+1]", out: "down.partial[1]"}
  - {id: 6, op: exchange, lane: kernel, axis: tp, shift: 1, wire: bf16, send: "down.partial[1]", receive: "down.received[1]", waits: [5]}
  - {id: 7, op: gemm, lane: compute, kernel_n: hidden*4, a: "x", b: "down.weight[0, 2*tp+1]", out: "down.partial[3]"}
  - {id: 8, op: elementwise, lane: kernel, function: add, in: ["down.partial[3]", "down.received[1]"], out: "down[0, 2*tp+1]", waits: [7]}
  - {id: 9, op: exchange, lane: kernel, axis: tp, shift: 1, wire: bf16, send: "down[0, 2*tp+1]", receive: "down[0, 2*((tp+1)%2)+1]"}
)");
}

TEST(FusedKernel, OnOneRankIsAKernelWithoutTransfers) {
  EXPECT_EQ(ops_of(down_ar(1, 2)), R"(ops:
  - {id: 0, op: gemm, lane: compute, kernel_n: hidden*2, a: "x", b: "down.weight[0, 0]", out: "down[0, 0]"}
  - {id: 1, op: gemm, lane: compute, kernel_n: hidden*2, a: "x", b: "down.weight[0, 1]", out: "down[0, 1]"}
)");
}

TEST(FusedKernel, IsProvedAndReadBackForEveryNumberOfRanksAndBlocks) {
  for (std::int32_t ranks = 1; ranks <= 9; ++ranks) {
    for (const std::int32_t blocks : {1, 2, 3, 8}) {
      const Program program = down_ar(ranks, blocks);
      EXPECT_TRUE(check_program(program).ok()) << program.name << ", " << ranks << " ranks";
      EXPECT_EQ(parse_program(to_text(program), program.name), program) << program.name << ", " << ranks << " ranks";
    }
  }
}

TEST(FusedKernel, ReducesAnyNumberOfTokensIfTheSumsCanBeCut) {
  const Program program = down_ar(8, 8);
  for (const std::int64_t tokens : {1, 7, 513, 4096, 4099, 4104}) {
    EXPECT_EQ(refusal_at(program, tokens, 8192), "") << tokens;
  }
  EXPECT_EQ(refusal_at(program, 4096, 8200),
            "8200 hidden cannot be cut into 64 equal blocks, as fused_kernel (bound, m=8) down_ar requires; choose a "
            "multiple of 64, such as 8192 or 8256");
}

// A toy GEMM of 64 x 64 x 64 over four ranks.
TEST(FusedKernel, HoldsAsManyPartialSumsAsAKernelThatCutsTokens) {
  const Program sums = down_ar(4, 2);
  const Program shards = generate(operation_of(Scope::down, false), 4, fused_kernel_strategy, {.sub_slices = 2});
  const Transformer model = bare_mlp({.hidden = 64, .ffn = 64});
  const Sizes sizes = bind_sizes(sums, quantities_of(model, {.seq = 64}));
  // x and the weight have 64 x 16 elements each, the sums and the partial sums 64 x 64 each, the received sums 48 x 64.
  EXPECT_EQ(bytes_per_rank(sums, sizes).count, 2 * (2 * 64 * 16 + 2 * 64 * 64 + 48 * 64));
  // After the reduce-scatter, a rank holds a quarter of the sums.
  EXPECT_EQ(bytes_per_rank(shards, bind_sizes(shards, quantities_of(model, {.seq = 64}))).count,
            2 * (2 * 64 * 16 + 64 * 64 + 16 * 64 + 48 * 64));
}

}  // namespace
}  // namespace commfuse
