// SPDX-License-Identifier: Apache-2.0
// GEMMs under tensor parallelism with sequence parallelism: column-parallel (ag_gemm) and row-parallel (gemm_rs).
#include "model/strategies/assembly.h"

namespace commfuse {

void Assembly::add_ag_gemm(const OperationStage& stage, bool last) {
  const Extent hidden{builder_.dimension(stage.contraction, 1), 1};
  const DimensionId columns = builder_.dimension(stage.columns, ranks_);
  const Extent own_columns{columns, stage.columns_per_rank};
  const Extent all_columns{columns, ranks_ * stage.columns_per_rank};
  if (made_.tensor == no_tensor) {
    const DType dtype = stage.norm ? sums() : options_.dtype;  // a norm reads the residual stream
    begin_with({builder_.input_tensor("x", tokens_, hidden, dtype),
                builder_.buffer("x", BufferRole::input, shard(), hidden, dtype)},
               own_rows(), 0);
  }
  if (stage.norm) {
    map({.function = Function::norm, .name = stage.name + ".norm"}, {made_}, hidden, false);
  }
  const TensorId w = builder_.input_tensor(stage.name + ".weight", hidden, all_columns, options_.dtype);
  const TensorId y = builder_.product_tensor(stage.name, made_.tensor, w, {.dtype = options_.dtype});
  const BufferId weight =
      builder_.buffer(stage.name + ".weight", BufferRole::weight, hidden, own_columns, options_.dtype);
  const bool ends_here = last && !stage.activation;
  const BufferId output = builder_.buffer(stage.name, ends_here ? BufferRole::output : BufferRole::scratch, tokens_,
                                          own_columns, options_.dtype);
  builder_.initially(builder_.whole(weight), w, 0, own_place(stage.columns_per_rank));
  done_ = strategy_.ag_gemm(site(stage, made_.buffer, weight, output), options_);
  builder_.unfused(GemmShape{.m = tokens_, .n = own_columns, .k = hidden, .dtype = options_.dtype});
  made_ = {y, output};
  if (stage.activation) {
    Extent activated = own_columns;
    activated.blocks /= *stage.activation == Function::swiglu ? 2 : 1;
    map({.function = *stage.activation, .name = "activated"}, {made_}, activated, last);
  }
  if (last) {
    const std::int32_t width = builder_.buffer_of(made_.buffer).columns.blocks;
    end_with(0, own_place(width));
  }
}

void Assembly::add_row_parallel(const OperationStage& stage, Generator generator, const HeldSums& held,
                                BufferRole role) {
  const DimensionId contraction = builder_.dimension(stage.contraction, ranks_);
  const Extent own_share{contraction, 1};
  if (made_.tensor == no_tensor) {
    begin_with({builder_.input_tensor("x", tokens_, {contraction, ranks_}, options_.dtype),
                builder_.buffer("x", BufferRole::input, tokens_, own_share, options_.dtype)},
               0, own_place());
  }
  const TensorId w = builder_.input_tensor(stage.name + ".weight", {contraction, ranks_}, held.columns, options_.dtype);
  const TensorId y = builder_.product_tensor(stage.name, made_.tensor, w, {.dtype = sums()});
  const BufferId weight =
      builder_.buffer(stage.name + ".weight", BufferRole::weight, own_share, held.columns, options_.dtype);
  const BufferId output = builder_.buffer(stage.name, role, held.rows, held.columns, sums());
  builder_.initially(builder_.whole(weight), w, own_place(), 0);
  done_ = generator(site(stage, made_.buffer, weight, output), options_);
  unfused_sum({.m = tokens_, .n = held.columns, .k = own_share, .dtype = options_.dtype});
  made_ = {y, output};
}

void Assembly::add_gemm_rs(const OperationStage& stage, bool last) {
  const bool ends_here = last && !stage.residual;
  const Extent hidden{builder_.dimension(stage.columns, 1), 1};
  add_row_parallel(stage, strategy_.gemm_rs, {shard(), hidden}, ends_here ? BufferRole::output : BufferRole::scratch);
  if (stage.residual) {
    map({.function = Function::residual, .name = stage.name + ".residual"}, {made_, stream_}, hidden, last);
    stream_ = made_;
  }
  if (last) {
    end_with(own_rows(), 0);
  }
}

void Assembly::add_gemm_ar(const OperationStage& stage, bool last) {
  const std::int32_t blocks = strategy_.gemm_ar_cuts_columns ? ranks_ * cuts_ : 1;
  const Extent columns{builder_.dimension(stage.columns, blocks), blocks};
  add_row_parallel(stage, strategy_.gemm_ar, {tokens_, columns}, last ? BufferRole::output : BufferRole::scratch);
  if (last) {
    end_with(0, 0);
  }
}

}  // namespace commfuse
