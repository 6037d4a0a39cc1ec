// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/partials_to_owners.h"

namespace commfuse {

Done partials_to_owners(const Stage& stage, const PartialsToOwners& how) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const std::int32_t cuts = stage.cuts;
  const BufferId partial = ranks > 1 ? stage.scratch("partial", ranks * cuts, stage.output) : stage.output;
  OpId computed{};
  const auto multiply = [&](std::int32_t step, std::int32_t block) {
    const Index shard = along(builder.mesh(), stage.axis, 1 + step) * cuts;
    computed = builder.gemm({.a = {builder.rows_of(stage.input, shard + block)},
                             .b = {builder.whole(stage.weight)},
                             .out = {builder.rows_of(partial, step * cuts + block)},
                             .waits = step + block == 0 ? stage.ready : std::vector<OpId>{},
                             .kernel_rows = how.one_kernel ? ranks * cuts : 0,
                             .transpose_b = how.transposed});
  };
  if (ranks == 1) {
    for (std::int32_t block = 0; block < cuts; ++block) {
      multiply(0, block);
    }
    return {computed};
  }
  const BufferId received = stage.scratch("received", (ranks - 1) * cuts, stage.output);
  std::vector<Operand> parts{{builder.rows_of(partial, (ranks - 1) * cuts, cuts)}};  // the rank's own partial product
  OpId sent{};
  for (std::int32_t step = 0; step + 1 < ranks; ++step) {
    for (std::int32_t block = 0; block < cuts; ++block) {
      multiply(step, block);
      sent = builder.exchange({.lane = how.transfers,
                               .axis = stage.axis,
                               .shift = step + 1,
                               .send = {builder.rows_of(partial, step * cuts + block)},
                               .receive = {builder.rows_of(received, step * cuts + block)},
                               .wire = builder.buffer_of(stage.output).dtype,
                               .waits = {computed}});
    }
    parts.push_back({builder.rows_of(received, step * cuts, cuts)});
  }
  for (std::int32_t block = 0; block < cuts; ++block) {
    multiply(ranks - 1, block);
  }
  const bool follows_gemms = how.sum == Lane{LaneKind::compute, 0};
  return {builder.elementwise({.lane = how.sum,
                               .function = Function::add,
                               .inputs = parts,
                               .out = {builder.whole(stage.output)},
                               .waits = follows_gemms ? std::vector{sent} : std::vector{sent, computed}})};
}

}  // namespace commfuse
