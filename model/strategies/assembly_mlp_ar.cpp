// SPDX-License-Identifier: Apache-2.0
// MLPs under tensor parallelism without sequence parallelism. Every rank holds two versions of all tokens: the residual
// stream, and the stream after the norm. The sum of the ranks' contributions is added to the stream, and the result is
// normalized for the next MLP.
#include "model/check.h"
#include "model/strategies/assembly.h"

namespace commfuse {

void Assembly::add_mlp_ar(const OperationStage& stage, bool last) {
  check(stage.activation.has_value(), "an MLP has an activation");
  const DType dtype = options_.dtype;
  const Extent hidden{builder_.dimension(stage.contraction, 1), 1};
  const DimensionId ffn = builder_.dimension(stage.columns, ranks_);
  // A rank's up projection has 2 blocks of columns if gate and up are side by side; after the activation there is 1.
  const Extent own_up{ffn, stage.columns_per_rank};
  const Extent own_columns{ffn, 1};
  const auto add_buffer = [&](const std::string& name, BufferRole role, DType held) {
    return builder_.buffer(name, role, tokens_, hidden, held);
  };
  if (made_.tensor == no_tensor) {
    begin_with(
        {builder_.input_tensor("stream", tokens_, hidden, sums()), add_buffer("stream", BufferRole::input, sums())}, 0,
        0);
    made_ = {builder_.input_tensor("x", tokens_, hidden, dtype), add_buffer("x", BufferRole::input, dtype)};
    builder_.initially(builder_.whole(made_.buffer), made_.tensor, 0, 0);
  }
  const TensorId w_up =
      builder_.input_tensor(stage.name + ".up.weight", hidden, {ffn, ranks_ * stage.columns_per_rank}, dtype);
  const TensorId up = builder_.product_tensor(stage.name + ".up", made_.tensor, w_up, {.dtype = dtype});
  const TensorId activated = builder_.function_tensor(stage.name + ".activated", *stage.activation, up);
  const TensorId w_down = builder_.input_tensor(stage.name + ".down.weight", {ffn, ranks_}, hidden, dtype);
  const TensorId down = builder_.product_tensor(stage.name + ".down", activated, w_down, {.dtype = sums()});
  const TensorId added = builder_.function_tensor(stage.name + ".added", Function::residual, down, stream_.tensor);
  const TensorId normed = builder_.function_tensor(stage.name + ".normed", Function::norm, added);

  // The buffers are added in separate statements, because compilers evaluate arguments in different orders, which would
  // change the numbers of the buffers.
  const BufferId output = add_buffer(stage.name, last ? BufferRole::output : BufferRole::scratch, dtype);
  const BufferId w_up_part = builder_.buffer(stage.name + ".up.weight", BufferRole::weight, hidden, own_up, dtype);
  Stage site = this->site(stage, made_.buffer, w_up_part, output);
  site.down = builder_.buffer(stage.name + ".down.weight", BufferRole::weight, own_columns, hidden, dtype);
  site.stream = stream_.buffer;
  site.added = add_buffer(stage.name + ".added", BufferRole::scratch, sums());
  site.activation = *stage.activation;
  builder_.initially(builder_.whole(site.weight), w_up, 0, this->own_place(stage.columns_per_rank));
  builder_.initially(builder_.whole(site.down), w_down, this->own_place(), 0);
  done_ = strategy_.mlp_ar(site, options_);

  builder_.unfused(GemmShape{.m = tokens_, .n = own_up, .k = hidden, .dtype = dtype});
  builder_.unfused(
      ElementwiseShape{.function = *stage.activation, .rows = tokens_, .columns = own_columns, .dtype = dtype});
  unfused_sum({.m = tokens_, .n = hidden, .k = own_columns, .dtype = dtype});
  builder_.unfused(ElementwiseShape{
      .function = Function::residual, .inputs = 2, .rows = tokens_, .columns = hidden, .dtype = sums()});
  builder_.unfused(ElementwiseShape{.function = Function::norm, .rows = tokens_, .columns = hidden, .dtype = dtype});
  made_ = {normed, site.output};
  stream_ = {added, site.added};
  if (last) {
    builder_.finally(builder_.whole(made_.buffer), made_.tensor, 0, 0);
  }
}

}  // namespace commfuse
