// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/partials_to_owners.h"

namespace commfuse {

Done partials_to_owners(const Stage& stage, const StrategyOptions& options, const PartialsToOwners& how) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const auto product = [&](std::int32_t step, const Region& out) {
    const Index shard = along(builder.mesh(), stage.axis, 1 + step);
    return builder.gemm({.a = {builder.rows_of(stage.input, shard)},
                         .b = {builder.whole(stage.weight)},
                         .out = {out},
                         .waits = step == 0 ? stage.ready : std::vector<OpId>{},
                         .kernel_rows = how.one_kernel ? ranks : 0});
  };
  if (ranks == 1) {
    return {product(0, builder.whole(stage.output))};
  }
  const BufferId partial = stage.scratch("partial", ranks, stage.output);
  const BufferId received = stage.scratch("received", ranks - 1, stage.output);
  const Region own = builder.rows_of(partial, ranks - 1);
  std::vector<Operand> parts{{own}};
  std::vector<OpId> sent;
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    const Region slot = builder.rows_of(partial, step);
    const OpId computed = product(step, slot);
    parts.push_back({builder.rows_of(received, step)});
    sent = {builder.exchange({.lane = how.lane,
                              .axis = stage.axis,
                              .shift = step + 1,
                              .send = {slot},
                              .receive = parts.back(),
                              .wire = options.dtype,
                              .waits = {computed},
                              .in_kernel = how.one_kernel})};
  }
  product(ranks - 1, own);
  return {builder.elementwise(
      {.function = Function::add, .inputs = parts, .out = {builder.whole(stage.output)}, .waits = sent})};
}

}  // namespace commfuse
