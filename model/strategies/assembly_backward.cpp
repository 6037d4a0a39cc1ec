// SPDX-License-Identifier: Apache-2.0
// The backward pass of GEMMs under tensor parallelism with sequence parallelism (Korthikanti et al. 2022, figure 5):
// for y = x w it computes dx = dy w^T for the previous layer and dw = x^T dy, which sums over all tokens and is kept in
// fp32.
#include <optional>

#include "model/strategies/assembly.h"

namespace commfuse {

Assembly::Value Assembly::gradient_of(const OperationStage& stage, const Value& x, const Value& dy) {
  const TensorId tensor =
      builder_.product_tensor(stage.name + ".dw", x.tensor, dy.tensor, {.transpose_a = true, .dtype = gradient_dtype});
  const Extent rows = builder_.buffer_of(x.buffer).columns;
  const Extent columns = builder_.buffer_of(dy.buffer).columns;
  return {tensor, builder_.buffer(stage.name + ".dw", BufferRole::output, rows, columns, gradient_dtype)};
}

void Assembly::unfused_gradient(Extent rows, Extent columns, Extent tokens) {
  builder_.unfused(GemmShape{.m = rows,
                             .n = columns,
                             .k = tokens,
                             .dtype = options_.dtype,
                             .transpose_a = true,
                             .out = options_.dtype == gradient_dtype ? std::nullopt : std::optional(gradient_dtype)});
}

void Assembly::add_ag_gemm_backward(const OperationStage& stage, bool last) {
  const Extent hidden{builder_.dimension(stage.contraction, 1), 1};
  const DimensionId columns = builder_.dimension(stage.columns, ranks_);
  const Extent own_columns{columns, stage.columns_per_rank};
  const Extent all_columns{columns, ranks_ * stage.columns_per_rank};
  const Index own_begin = this->own_place(stage.columns_per_rank);
  if (made_.tensor == no_tensor) {
    made_ = given({.name = "dy",
                   .rows = tokens_,
                   .columns = all_columns,
                   .held_rows = tokens_,
                   .held_columns = own_columns,
                   .column = own_begin});
  }
  const Value dy = made_;
  const bool saved = options_.regather == Regather::saved;
  const Value x = given({.name = stage.name + ".x",
                         .rows = tokens_,
                         .columns = hidden,
                         .held_rows = saved ? tokens_ : shard(),
                         .held_columns = hidden,
                         .row = saved ? Index{} : own_rows()});
  const Value w = given({.name = stage.name + ".weight",
                         .role = BufferRole::weight,
                         .rows = hidden,
                         .columns = all_columns,
                         .held_rows = hidden,
                         .held_columns = own_columns,
                         .column = own_begin});
  const TensorId dx =
      builder_.product_tensor(stage.name + ".dx", dy.tensor, w.tensor, {.transpose_b = true, .dtype = sums()});
  const BufferId output =
      builder_.buffer(stage.name + ".dx", last ? BufferRole::output : BufferRole::scratch, shard(), hidden, sums());
  const Value dw = gradient_of(stage, x, dy);
  Stage site = this->site(stage, dy.buffer, w.buffer, output);
  site.saved = x.buffer;
  site.gradient = dw.buffer;
  done_ = strategy_.ag_gemm_backward(site, options_);
  unfused_sum({.m = tokens_, .n = hidden, .k = own_columns, .dtype = options_.dtype, .transpose_b = true});
  unfused_gradient(hidden, own_columns, tokens_);
  builder_.finally(builder_.whole(dw.buffer), dw.tensor, 0, own_begin);
  made_ = {dx, output};
  if (last) {
    builder_.finally(builder_.whole(output), dx, own_rows(), 0);
  }
}

void Assembly::add_gemm_rs_backward(const OperationStage& stage, bool last) {
  const Extent hidden{builder_.dimension(stage.columns, 1), 1};
  const DimensionId contraction = builder_.dimension(stage.contraction, ranks_);
  const Extent share{contraction, 1};
  const Extent all_shares{contraction, ranks_};
  const Index own_row = this->own_place();
  if (made_.tensor == no_tensor) {
    made_ = given({.name = "dy",
                   .rows = tokens_,
                   .columns = hidden,
                   .held_rows = shard(),
                   .held_columns = hidden,
                   .row = own_rows()});
  }
  const Value dy = made_;
  const Value x = given({.name = stage.name + ".x",
                         .rows = tokens_,
                         .columns = all_shares,
                         .held_rows = tokens_,
                         .held_columns = share,
                         .column = own_row});
  const Value w = given({.name = stage.name + ".weight",
                         .role = BufferRole::weight,
                         .rows = all_shares,
                         .columns = hidden,
                         .held_rows = share,
                         .held_columns = hidden,
                         .row = own_row});
  const TensorId dx =
      builder_.product_tensor(stage.name + ".dx", dy.tensor, w.tensor, {.transpose_b = true, .dtype = options_.dtype});
  const BufferId output = builder_.buffer(stage.name + ".dx", last ? BufferRole::output : BufferRole::scratch, tokens_,
                                          share, options_.dtype);
  const Value dw = gradient_of(stage, x, dy);
  Stage site = this->site(stage, dy.buffer, w.buffer, output);
  site.saved = x.buffer;
  site.gradient = dw.buffer;
  done_ = strategy_.gemm_rs_backward(site, options_);
  builder_.unfused(GemmShape{.m = tokens_, .n = share, .k = hidden, .dtype = options_.dtype, .transpose_b = true});
  unfused_gradient(share, hidden, tokens_);
  builder_.finally(builder_.whole(dw.buffer), dw.tensor, own_row, 0);
  made_ = {dx, output};
  if (last) {
    builder_.finally(builder_.whole(output), dx, 0, own_row);
  }
}

}  // namespace commfuse
