// SPDX-License-Identifier: Apache-2.0
// GEMMs under data parallelism with weights spread over the ranks (ZeRO, Rajbhandari et al. 2020, section 5; FSDP, Zhao
// et al. 2023). Weights are gathered before their GEMM. Their gradients, which sum over the tokens of all ranks, are
// scattered after the GEMM that computes them. Between forward and backward a rank keeps the gathered weights and the
// inputs of its layers.
#include "model/check.h"
#include "model/strategies/assembly.h"
#include "model/strategies/weight_shards.h"

namespace commfuse {

void Assembly::add_weight_ag_gemm(const OperationStage& stage) {
  const std::int32_t shards = ranks_ * cuts_;
  const Index own_row = this->own_place();
  if (made_.tensor == no_tensor) {
    const std::int32_t blocks = stage.contraction_is_cut ? shards : 1;
    const Extent contraction{builder_.dimension(stage.contraction, blocks), blocks};
    made_ = given({.name = "x",
                   .rows = tokens_,
                   .columns = contraction,
                   .held_rows = own_tokens(),
                   .held_columns = contraction,
                   .row = own_row});
  }
  const Value x = made_;
  const Extent contraction = builder_.buffer_of(x.buffer).columns;
  const Extent columns{builder_.dimension(stage.columns, shards), shards * stage.columns_per_rank};
  const bool feeds_another = &stage != &operation_.stages.back() && (&stage + 1)->kind == SiteKind::weight_ag_gemm;
  const std::string name = stage.name + ".weight";
  const Value w{builder_.input_tensor(name, columns, contraction, options_.dtype),
                builder_.buffer(name, BufferRole::weight, columns, contraction, options_.dtype)};
  made_ = {builder_.product_tensor(stage.name, x.tensor, w.tensor, {.transpose_b = true}),
           builder_.buffer(stage.name, feeds_another ? BufferRole::scratch : BufferRole::output, own_tokens(), columns,
                           options_.dtype)};
  const Stage site = this->site(stage, x.buffer, w.buffer, made_.buffer);
  const WeightShards weight(site);
  for (std::int32_t i = 0; i < cuts_; ++i) {
    builder_.initially(weight.shard({.slice = i}), w.tensor, weight.place({.slice = i}), 0);
  }
  done_ = strategy_.weight_ag_gemm(site, options_);
  builder_.unfused(
      GemmShape{.m = own_tokens(), .n = columns, .k = contraction, .dtype = options_.dtype, .transpose_b = true});
  if (!feeds_another) {
    builder_.finally(builder_.whole(made_.buffer), made_.tensor, own_row, 0);
  }
  layers_.push_back({x, w});
}

void Assembly::add_gradient_rs(const OperationStage& stage, bool last) {
  check(!layers_.empty(), "every backward stage has its forward stage");
  const Layer layer = layers_.back();
  layers_.pop_back();
  const Index own_row = this->own_place();
  const Extent columns = builder_.buffer_of(layer.weight.buffer).rows;
  const Extent contraction = builder_.buffer_of(layer.weight.buffer).columns;
  if (gradient_.tensor == no_tensor) {
    gradient_ = given({.name = "dy",
                       .rows = tokens_,
                       .columns = columns,
                       .held_rows = own_tokens(),
                       .held_columns = columns,
                       .row = own_row});
  }
  const Value dy = gradient_;
  gradient_ = {builder_.product_tensor(stage.name + ".dx", dy.tensor, layer.weight.tensor),
               builder_.buffer(stage.name + ".dx", last ? BufferRole::output : BufferRole::scratch, own_tokens(),
                               contraction, options_.dtype)};
  const TensorId dw = builder_.product_tensor(stage.name + ".dw", dy.tensor, layer.input.tensor,
                                              {.transpose_a = true, .dtype = gradient_dtype});
  Stage site = this->site(stage, dy.buffer, layer.weight.buffer, gradient_.buffer);
  const WeightShards weight(site);
  site.saved = layer.input.buffer;
  site.gradient = builder_.buffer(stage.name + ".dw", BufferRole::output, {columns.dimension, cuts_ * weight.width()},
                                  contraction, gradient_dtype);
  done_ = strategy_.gradient_rs(site, options_);
  builder_.unfused(GemmShape{.m = own_tokens(), .n = contraction, .k = columns, .dtype = options_.dtype});
  unfused_gradient(columns, contraction, own_tokens());
  for (std::int32_t i = 0; i < cuts_; ++i) {
    builder_.finally(builder_.rows_of(site.gradient, i * weight.width(), weight.width()), dw,
                     weight.place({.slice = i}), 0);
  }
  if (last) {
    builder_.finally(builder_.whole(gradient_.buffer), gradient_.tensor, own_row, 0);
  }
}

}  // namespace commfuse
