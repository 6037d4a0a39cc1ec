// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/slices.h"

namespace commfuse {

Operand slice(const Stage& stage, BufferId buffer, std::int32_t i) {
  return {stage.rows_of(buffer, i * stage.ranks, stage.ranks)};
}

Operand all_slices(const Stage& stage, BufferId buffer) {
  Operand rows;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const Operand slice = slice_of_all_shards(stage, buffer, i);
    rows.insert(rows.end(), slice.begin(), slice.end());
  }
  return rows;
}

OpId gather_ahead(const Stage& stage, const StrategyOptions& options, BufferId gathered,
                  const std::function<OpId(std::int32_t i, OpId arrived)>& multiply) {
  const auto gather = [&](std::int32_t i) {
    return stage.builder.collective({.kind = CollectiveKind::all_gather,
                                     .axis = stage.axis,
                                     .in = {stage.rows_of(stage.input, i)},
                                     .out = slice(stage, gathered, i),
                                     .wire = options.dtype,
                                     .waits = i == 0 ? stage.ready : std::vector<OpId>{}});
  };
  OpId last{};
  OpId arrived = gather(0);
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const OpId ready = arrived;
    if (i + 1 < stage.cuts) {
      arrived = gather(i + 1);
    }
    last = multiply(i, ready);
  }
  return last;
}

}  // namespace commfuse
