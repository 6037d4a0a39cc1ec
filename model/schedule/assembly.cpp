// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/assembly.h"

#include <utility>

namespace commfuse {

Assembly::Assembly(std::string name, const Mesh& mesh, const ShardAxes& axes, const Strategy& strategy,
                   const StrategyOptions& options)
    : builder_(std::move(name), mesh),
      strategy_(strategy),
      options_(options),
      axes_(axes),
      ranks_(axes.ranks(mesh)),
      cuts_(strategy.cuts(options)),
      tokens_{builder_.dimension("tokens", ranks_ * cuts_), ranks_ * cuts_} {}

void Assembly::add(const OperationStage& stage, bool last) {
  switch (stage.kind) {
    case SiteKind::ag_gemm: add_ag_gemm(stage, last); break;
    case SiteKind::gemm_rs: add_gemm_rs(stage, last); break;
  }
}

void Assembly::begin_with(const Value& value, Index row, Index column) {
  made_ = value;
  stream_ = value;
  builder_.initially(builder_.whole(value.buffer), value.tensor, row, column);
}

void Assembly::map(const Mapping& mapping, const std::vector<Value>& of, Extent columns, bool last) {
  const Extent rows = builder_.buffer_of(of.front().buffer).rows;
  const TensorId tensor = builder_.function_tensor(mapping.name, mapping.function, of.front().tensor,
                                                   of.size() > 1 ? of[1].tensor : no_tensor);
  const BufferId buffer =
      builder_.buffer(mapping.name, last ? BufferRole::output : BufferRole::scratch, rows, columns, options_.dtype);
  std::vector<Operand> inputs;
  for (const Value& value : of) {
    inputs.push_back({builder_.whole(value.buffer)});
  }
  done_ = {builder_.elementwise({.function = mapping.function,
                                 .inputs = inputs,
                                 .out = {builder_.whole(buffer)},
                                 .waits = done_,
                                 .purpose = Purpose::essential})};
  builder_.unfused(ElementwiseShape{.function = mapping.function,
                                    .inputs = static_cast<std::int32_t>(of.size()),
                                    .rows = rows,
                                    .columns = columns,
                                    .dtype = options_.dtype});
  made_ = {tensor, buffer};
}

void Assembly::attend(const std::string& dimension, bool last) {
  const DimensionId heads = builder_.dimension(dimension, ranks_);
  const Extent qkv = builder_.buffer_of(made_.buffer).columns;
  const Extent own{heads, 1};
  const TensorId tensor = builder_.attention_tensor("attended", made_.tensor, {heads, ranks_}, true);
  const BufferId buffer =
      builder_.buffer("attended", last ? BufferRole::output : BufferRole::scratch, tokens_, own, options_.dtype);
  const DimensionId batch = builder_.dimension("batch", 1);
  const DimensionId head = builder_.dimension("head", 1);
  const Operand all{builder_.whole(made_.buffer)};
  done_ = {builder_.attention({.queries = all,
                               .keys = all,
                               .out = {builder_.whole(buffer)},
                               .batch = batch,
                               .head = head,
                               .causal = true,
                               .waits = done_})};
  builder_.unfused(AttentionShape{.queries = tokens_,
                                  .keys = tokens_,
                                  .columns = own,
                                  .qkv = qkv,
                                  .batch = batch,
                                  .head = head,
                                  .causal = true,
                                  .dtype = options_.dtype});
  made_ = {tensor, buffer};
}

Stage Assembly::site(const OperationStage& stage, BufferId input, BufferId weight, BufferId output) {
  return {.builder = builder_,
          .name = stage.name,
          .axis = axes_.inner,
          .outer = axes_.outer,
          .ranks = ranks_,
          .cuts = cuts_,
          .input = input,
          .weight = weight,
          .output = output,
          .ready = done_};
}

}  // namespace commfuse
