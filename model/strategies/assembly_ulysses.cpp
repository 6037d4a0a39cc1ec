// SPDX-License-Identifier: Apache-2.0
// The attention block under Ulysses sequence parallelism (DeepSpeed-Ulysses, Jacobs et al. 2023): every rank keeps its
// tokens and has all weights. An all-to-all turns all heads of a rank's own tokens into its own heads of all tokens,
// and a second one reverses this for the output of attention.
#include "model/strategies/assembly.h"

namespace commfuse {

void Assembly::add_gemm_a2a(const OperationStage& stage, bool last) {
  const Extent hidden{builder_.dimension(stage.contraction, 1), 1};
  const DimensionId columns = builder_.dimension(stage.columns, ranks_);
  const Extent all_columns{columns, ranks_};
  if (made_.tensor == no_tensor) {
    begin_with({builder_.input_tensor("x", tokens_, hidden, options_.dtype),
                builder_.buffer("x", BufferRole::input, shard(), hidden, options_.dtype)},
               own_rows(), 0);
  }
  const TensorId w = builder_.input_tensor(stage.name + ".weight", hidden, all_columns, options_.dtype);
  const TensorId y = builder_.product_tensor(stage.name, made_.tensor, w);
  const BufferId weight =
      builder_.buffer(stage.name + ".weight", BufferRole::weight, hidden, all_columns, options_.dtype);
  const BufferId output = builder_.buffer(stage.name, last ? BufferRole::output : BufferRole::scratch, tokens_,
                                          {columns, 1}, options_.dtype);
  builder_.initially(builder_.whole(weight), w, 0, 0);
  done_ = strategy_.gemm_a2a(site(stage, made_.buffer, weight, output), options_);
  builder_.unfused(GemmShape{.m = shard(), .n = all_columns, .k = hidden, .dtype = options_.dtype});
  made_ = {y, output};
  if (last) {
    end_with(0, own_place());
  }
}

void Assembly::add_attention_a2a(const OperationStage& stage, bool last) {
  const Extent hidden{builder_.dimension(stage.columns, 1), 1};
  const Extent all_heads{builder_.dimension(stage.contraction, ranks_), ranks_};
  const TensorId w = builder_.input_tensor(stage.name + ".weight", all_heads, hidden, options_.dtype);
  const TensorId y = builder_.product_tensor(stage.name, made_.tensor, w);
  const BufferId weight =
      builder_.buffer(stage.name + ".weight", BufferRole::weight, all_heads, hidden, options_.dtype);
  const BufferId output =
      builder_.buffer(stage.name, last ? BufferRole::output : BufferRole::scratch, shard(), hidden, options_.dtype);
  builder_.initially(builder_.whole(weight), w, 0, 0);
  done_ = strategy_.attention_a2a(site(stage, made_.buffer, weight, output), options_);
  builder_.unfused(GemmShape{.m = shard(), .n = hidden, .k = all_heads, .dtype = options_.dtype});
  made_ = {y, output};
  if (last) {
    end_with(own_rows(), 0);
  }
}

}  // namespace commfuse
