// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/mlp_block.h"

namespace commfuse {

MlpBlock::MlpBlock(const Stage& stage) : stage_(stage) {
  ProgramBuilder& builder = stage.builder;
  const Buffer input = builder.buffer_of(stage.input);  // a copy, because adding a buffer may move existing ones
  const Extent up = builder.buffer_of(stage.weight).columns;
  const Extent activated = builder.buffer_of(stage.down).rows;
  up_ = builder.buffer(stage.name + ".up", BufferRole::scratch, input.rows, up, input.dtype);
  activated_ = builder.buffer(stage.name + ".activated", BufferRole::scratch, input.rows, activated, input.dtype);
  partial_ = builder.buffer(stage.name + ".partial", BufferRole::scratch, input.rows, input.columns,
                            builder.buffer_of(stage.added).dtype);
}

OpId MlpBlock::activate(std::int32_t first, std::int32_t rows, const std::vector<OpId>& waits) const {
  ProgramBuilder& builder = stage_.builder;
  builder.gemm({.a = {builder.rows_of(stage_.input, first, rows)},
                .b = {builder.whole(stage_.weight)},
                .out = {builder.rows_of(up_, first, rows)},
                .waits = waits});
  return builder.elementwise({.function = stage_.activation,
                              .inputs = {{builder.rows_of(up_, first, rows)}},
                              .out = {builder.rows_of(activated_, first, rows)},
                              .purpose = Purpose::essential});
}

OpId MlpBlock::multiply(std::int32_t first, std::int32_t rows) const {
  ProgramBuilder& builder = stage_.builder;
  return builder.gemm({.a = {builder.rows_of(activated_, first, rows)},
                       .b = {builder.whole(stage_.down)},
                       .out = {partial(first, rows)}});
}

Region MlpBlock::partial(std::int32_t first, std::int32_t rows) const {
  return stage_.builder.rows_of(partial_, first, rows);
}

OpId MlpBlock::add_and_norm(Lane lane, const Region& sum, Index row, const Region& normed,
                            const std::vector<OpId>& waits) const {
  ProgramBuilder& builder = stage_.builder;
  const Region added = builder.rows_of(stage_.added, row, sum.rows);
  builder.elementwise({.lane = lane,
                       .function = Function::residual,
                       .inputs = {{sum}, {builder.rows_of(stage_.stream, row, sum.rows)}},
                       .out = {added},
                       .waits = waits,
                       .purpose = Purpose::essential});
  return builder.elementwise(
      {.lane = lane, .function = Function::norm, .inputs = {{added}}, .out = {normed}, .purpose = Purpose::essential});
}

Done MlpBlock::alone() const {
  activate(0, stage_.cuts, stage_.ready);
  const OpId multiplied = multiply(0, stage_.cuts);
  return {add_and_norm({LaneKind::compute, 0}, partial(0, stage_.cuts), 0, stage_.builder.whole(stage_.output),
                       {multiplied})};
}

}  // namespace commfuse
