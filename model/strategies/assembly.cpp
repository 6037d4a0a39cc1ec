// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/assembly.h"

#include <algorithm>
#include <utility>

#include "model/strategies/scope.h"

namespace commfuse {

namespace {

/// Returns the number of equal parts into which the program cuts all tokens.
std::int32_t token_cuts(const Operation& operation, const Strategy& strategy, std::int32_t ranks, std::int32_t cuts) {
  const bool has_all_reduce = std::ranges::any_of(
      operation.stages, [](const OperationStage& stage) { return stage.kind == SiteKind::gemm_ar; });
  if (has_all_reduce && strategy.gemm_ar_cuts_columns) {
    return 1;
  }
  return is_data_parallel(operation) ? ranks : ranks * cuts;
}

}  // namespace

Assembly::Assembly(std::string name, const Mesh& mesh, const ShardAxes& axes, const Operation& operation,
                   const Strategy& strategy, const StrategyOptions& options)
    : builder_(std::move(name), mesh),
      operation_(operation),
      strategy_(strategy),
      options_(options),
      axes_(axes),
      ranks_(axes.ranks(mesh)),
      cuts_(cuts_of(strategy, kinds_of(operation), options)),
      order_{.cuts = token_cuts(operation, strategy, ranks_, cuts_),
             .zigzag = options.attention == AttentionCut::zigzag},
      tokens_{builder_.dimension("tokens", order_.blocks()), order_.blocks()} {}

void Assembly::add(const OperationStage& stage, bool last) {
  switch (stage.kind) {
    case SiteKind::ag_gemm: add_ag_gemm(stage, last); break;
    case SiteKind::gemm_rs: add_gemm_rs(stage, last); break;
    case SiteKind::gemm_ar: add_gemm_ar(stage, last); break;
    case SiteKind::mlp_ar: add_mlp_ar(stage, last); break;
    case SiteKind::ag_gemm_backward: add_ag_gemm_backward(stage, last); break;
    case SiteKind::gemm_rs_backward: add_gemm_rs_backward(stage, last); break;
    case SiteKind::attention_rs:
      attend(stage.contraction);
      add_gemm_rs(stage, last);
      break;
    case SiteKind::gemm_a2a: add_gemm_a2a(stage, last); break;
    case SiteKind::attention_a2a:
      attend(stage.contraction);
      add_attention_a2a(stage, last);
      break;
    case SiteKind::weight_ag_gemm: add_weight_ag_gemm(stage); break;
    case SiteKind::gradient_rs: add_gradient_rs(stage, last); break;
  }
}

Assembly::Value Assembly::given(const Given& given) {
  const Value value{builder_.input_tensor(given.name, given.rows, given.columns, options_.dtype),
                    builder_.buffer(given.name, given.role, given.held_rows, given.held_columns, options_.dtype)};
  builder_.initially(builder_.whole(value.buffer), value.tensor, given.row, given.column);
  return value;
}

void Assembly::begin_with(const Value& value, Index row, Index column) {
  made_ = value;
  stream_ = value;
  declare_rows(value, row, column, &ProgramBuilder::initially);
}

void Assembly::end_with(Index row, Index column) { declare_rows(made_, row, column, &ProgramBuilder::finally); }

/// Declares that the buffer of `value` holds the rows of the all-token tensor from `row` on. In zig-zag, adjacent rows
/// need not be adjacent in the sequence.
void Assembly::declare_rows(const Value& value, Index row, Index column, Moment moment) {
  std::int32_t above = 0;
  for (const TokenRun& run : order_.runs(row, builder_.buffer_of(value.buffer).rows.blocks)) {
    (builder_.*moment)(builder_.rows_of(value.buffer, above, run.rows), value.tensor, run.position, column);
    above += run.rows;
  }
}

void Assembly::map(const Mapping& mapping, const std::vector<Value>& arguments, Extent columns, bool last) {
  const Extent rows = builder_.buffer_of(arguments.front().buffer).rows;
  const TensorId tensor = builder_.function_tensor(mapping.name, mapping.function, arguments.front().tensor,
                                                   arguments.size() > 1 ? arguments[1].tensor : no_tensor);
  const DType dtype = mapping.function == Function::residual ? sums() : options_.dtype;
  const BufferId buffer =
      builder_.buffer(mapping.name, last ? BufferRole::output : BufferRole::scratch, rows, columns, dtype);
  std::vector<Operand> inputs;
  for (const Value& value : arguments) {
    inputs.push_back({builder_.whole(value.buffer)});
  }
  done_ = {builder_.elementwise({.function = mapping.function,
                                 .inputs = inputs,
                                 .out = {builder_.whole(buffer)},
                                 .waits = done_,
                                 .purpose = Purpose::essential})};
  builder_.unfused(ElementwiseShape{.function = mapping.function,
                                    .inputs = static_cast<std::int32_t>(arguments.size()),
                                    .rows = rows,
                                    .columns = columns,
                                    .dtype = dtype});
  made_ = {tensor, buffer};
}

void Assembly::unfused_sum(GemmShape gemm) {
  gemm.out = sums() == gemm.dtype ? std::nullopt : std::optional(sums());
  builder_.unfused(gemm);
}

Stage Assembly::site(const OperationStage& stage, BufferId input, BufferId weight, BufferId output) {
  return {.builder = builder_,
          .name = stage.name,
          .axis = axes_.inner,
          .outer = axes_.outer,
          .ranks = ranks_,
          .cuts = cuts_,
          .grain = order_.grain(),
          .input = input,
          .weight = weight,
          .output = output,
          .ready = done_,
          .attend = std::exchange(attend_, nullptr)};
}

}  // namespace commfuse
