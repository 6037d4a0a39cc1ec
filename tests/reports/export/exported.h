// SPDX-License-Identifier: Apache-2.0
// Small schedules for tests of exporters: lowered, sized, with invented costs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "model/program/builder.h"
#include "model/strategies/scope.h"
#include "reports/export/tasks.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {

struct Exported {
  std::shared_ptr<const Program> program;
  Lowered lowered;
  Sizes sizes;
  Costs costs;

  /// All blocks have one element, except blocks of `hidden` and `k`, which have `width`.
  Exported(Program unlowered, const OpCosts& op_costs, std::int64_t width = 1)
      : program(std::make_shared<const Program>(std::move(unlowered))),
        lowered(lower(program)),
        costs(costs_of(*program, op_costs)) {
    for (const Dimension& dimension : program->dimensions) {
      sizes.block.push_back(dimension.name == "hidden" || dimension.name == "k" ? width : 1);
    }
  }

  [[nodiscard]] reports::ExportInput input() const { return {lowered, sizes, costs}; }
};

inline Program generated(Scope scope, std::int32_t ranks, const Strategy& strategy, const StrategyOptions& options) {
  return generate(operation_of(scope, true), ranks, strategy, options);
}

/// Returns an all-gather. At step s, rank r sends to rank r + 1 the shard that it received at step s - 1. At step 0,
/// rank r sends its own shard.
inline Program ring_all_gather(std::int32_t ranks) {
  ProgramBuilder builder("AG", Mesh{{{"tp", ranks}}});
  const DimensionId tokens = builder.dimension("tokens", ranks);
  const DimensionId hidden = builder.dimension("hidden", 1);
  const TensorId x = builder.input_tensor("x", {tokens, ranks}, {hidden, 1}, DType::bf16);
  const BufferId gathered = builder.buffer("all", BufferRole::output, {tokens, ranks}, {hidden, 1}, DType::bf16);
  const auto shard = [&](std::int32_t back) { return along(builder.mesh(), 0, -back); };
  builder.initially(builder.rows_of(gathered, shard(0)), x, shard(0), 0);
  builder.finally(builder.whole(gathered), x, 0, 0);
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    builder.exchange(
        {.send = {builder.rows_of(gathered, shard(step))}, .receive = {builder.rows_of(gathered, shard(step + 1))}});
  }
  return std::move(builder).build();
}

/// Returns one collective over `ranks`, of 12 rows in total, which `groups` groups run concurrently. Buffer contents
/// are not described.
inline Program one_collective(CollectiveKind kind, std::int32_t ranks, std::int32_t groups = 1) {
  ProgramBuilder builder("collective", Mesh{{{"other", groups}, {"tp", ranks}}});
  const DimensionId tokens = builder.dimension("tokens", 12);
  const DimensionId hidden = builder.dimension("hidden", 1);
  const std::int32_t in = kind == CollectiveKind::all_gather ? 12 / ranks : 12;
  const std::int32_t out = kind == CollectiveKind::reduce_scatter ? 12 / ranks : 12;
  const BufferId from = builder.buffer("from", BufferRole::input, {tokens, in}, {hidden, 1}, DType::bf16);
  const BufferId to = builder.buffer("to", BufferRole::output, {tokens, out}, {hidden, 1}, DType::bf16);
  builder.collective({.kind = kind, .axis = 1, .in = {builder.whole(from)}, .out = {builder.whole(to)}});
  return std::move(builder).build();
}

}  // namespace commfuse::test
