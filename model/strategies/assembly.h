// SPDX-License-Identifier: Apache-2.0
// Builds one program from the stages of an operation; the input of each stage is the output of the previous one.
#pragma once

#include <string>
#include <vector>

#include "model/program/builder.h"
#include "model/strategies/generate.h"
#include "model/strategies/stage.h"
#include "model/strategies/strategies.h"
#include "model/strategies/token_order.h"

namespace commfuse {

/// Dtype of the gradients of weights, whatever the dtype of the weights.
inline constexpr DType gradient_dtype = DType::fp32;

/// Returns the dtype of sums over ranks, and of the residual stream to which they are added: NCCL, DeepGEMM and
/// PyTorch's async TP exchange the partial sums of fp8 GEMMs in 16 bits.
constexpr DType dtype_of_sums(DType dtype) { return dtype == DType::fp8 ? DType::bf16 : dtype; }

/// Assembles a program. The kinds of sites are in assembly_*.cpp.
class Assembly {
 public:
  Assembly(std::string name, const Mesh& mesh, const ShardAxes& axes, const Operation& operation,
           const Strategy& strategy, const StrategyOptions& options);

  void add(const OperationStage& stage, bool last);

  Program build() && { return std::move(builder_).build(); }

 private:
  /// A tensor and the buffer that holds this rank's part of it.
  struct Value {
    TensorId tensor = no_tensor;
    BufferId buffer{};
  };
  struct Mapping {
    Function function = Function::copy;
    std::string name;
  };

  void add_ag_gemm(const OperationStage& stage, bool last);
  void add_gemm_rs(const OperationStage& stage, bool last);
  void add_gemm_ar(const OperationStage& stage, bool last);
  void add_mlp_ar(const OperationStage& stage, bool last);
  void add_ag_gemm_backward(const OperationStage& stage, bool last);
  void add_gemm_rs_backward(const OperationStage& stage, bool last);
  void add_gemm_a2a(const OperationStage& stage, bool last);
  void add_attention_a2a(const OperationStage& stage, bool last);
  void add_weight_ag_gemm(const OperationStage& stage);
  void add_gradient_rs(const OperationStage& stage, bool last);

  /// Makes `value` the input of the first stage and the start of the residual stream. The buffer of `value` holds the
  /// part of the all-token tensor that begins at `row` and `column`.
  void begin_with(const Value& value, Index row, Index column);
  /// A tensor that exists from the start, and the part of it in this rank's buffer of the same name.
  struct Given {
    std::string name;
    BufferRole role = BufferRole::input;
    Extent rows, columns;            // size of the tensor
    Extent held_rows, held_columns;  // size of the buffer
    Index row, column;               // start of the part in the tensor
  };
  Value given(const Given& given);
  /// Extents of the sums that a rank holds at the end.
  struct HeldSums {
    Extent rows, columns;
  };
  /// Adds a GEMM whose weight is cut by rows. `generator` brings the sums into a buffer with the extents of `held`.
  void add_row_parallel(const OperationStage& stage, Generator generator, const HeldSums& held, BufferRole role);
  /// Returns x^T dy in a new buffer.
  Value gradient_of(const OperationStage& stage, const Value& x, const Value& dy);
  /// Makes the current value the output of the program, with rows and columns as for begin_with.
  void end_with(Index row, Index column);
  /// Adds, as unfused work, a GEMM whose output is summed over ranks.
  void unfused_sum(GemmShape gemm);
  /// Adds the gradient of a weight as unfused work: rows x columns, summed over `tokens`.
  void unfused_gradient(Extent rows, Extent columns, Extent tokens);
  /// Adds one op over all rows; the unfused operator has the same op.
  void map(const Mapping& mapping, const std::vector<Value>& arguments, Extent columns, bool last);
  /// Adds causal attention of this rank's heads: all queries in one op, or in the parts that later ops request.
  void attend(const std::string& dimension);
  /// Buffers and dimensions of an attention.
  struct Core {
    BufferId qkv{};
    BufferId attended{};
    DimensionId batch{};
    DimensionId head{};
  };
  MakeRows core_of(const Core& core);

  using Moment = void (ProgramBuilder::*)(const Region&, TensorId, Index, Index);
  void declare_rows(const Value& value, Index row, Index column, Moment moment);
  /// Returns this rank's number of tokens under data parallelism.
  [[nodiscard]] Extent own_tokens() const { return {tokens_.dimension, 1}; }
  [[nodiscard]] Extent shard() const { return {tokens_.dimension, cuts_ * order_.grain()}; }
  /// Returns the rank's place along its ring times `scale`, where its part of a tensor begins.
  [[nodiscard]] Index own_place(std::int32_t scale = 1) const { return axes_.place(builder_.mesh()) * scale; }
  [[nodiscard]] DType sums() const { return dtype_of_sums(options_.dtype); }
  [[nodiscard]] Index own_rows() const { return own_place(cuts_ * order_.grain()); }
  Stage site(const OperationStage& stage, BufferId input, BufferId weight, BufferId output);

  ProgramBuilder builder_;
  const Operation& operation_;
  const Strategy& strategy_;
  const StrategyOptions& options_;
  ShardAxes axes_;
  std::int32_t ranks_;
  std::int32_t cuts_;
  TokenOrder order_;
  Extent tokens_;
  Value made_;    // output of the previous stage
  Value stream_;  // residual stream
  /// Data parallelism: a layer whose backward pass is still to come.
  struct Layer {
    Value input, weight;
  };
  std::vector<Layer> layers_;  // data parallelism: first to last
  Value gradient_;             // data parallelism: gradient of the output of the remaining layers
  Done done_;
  MakeRows attend_;  // makes rows of made_, if it is computed by query slice
};

}  // namespace commfuse
