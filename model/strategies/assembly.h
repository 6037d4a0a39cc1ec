// SPDX-License-Identifier: Apache-2.0
// Puts the stages of an operation together into one program; each takes over what the one before made.
#pragma once

#include <string>
#include <vector>

#include "model/program/builder.h"
#include "model/strategies/generate.h"
#include "model/strategies/stage.h"
#include "model/strategies/strategies.h"
#include "model/strategies/token_order.h"

namespace commfuse {

/// Of gradients, whatever the dtype of what they are the gradient of.
inline constexpr DType gradient_dtype = DType::fp32;

/// A file of its own for every kind of site: assembly_*.cpp.
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
  void add_mlp_ar(const OperationStage& stage, bool last);
  void add_ag_gemm_backward(const OperationStage& stage, bool last);
  void add_gemm_rs_backward(const OperationStage& stage, bool last);
  void add_gemm_a2a(const OperationStage& stage, bool last);
  void add_attention_a2a(const OperationStage& stage, bool last);
  void add_weight_ag_gemm(const OperationStage& stage);
  void add_gradient_rs(const OperationStage& stage, bool last);

  /// The input of the first stage; residuals start from it. Rows from `row` on of a buffer of all tokens.
  void begin_with(const Value& value, Index row, Index column);
  /// A tensor that is there from the start, and the part of it that lies in this rank's buffer of the same name.
  struct Given {
    std::string name;
    BufferRole role = BufferRole::input;
    Extent rows, columns;            // of the tensor
    Extent held_rows, held_columns;  // of the buffer
    Index row, column;               // of the tensor: where the part begins
  };
  Value given(const Given& given);
  /// x^T dy, and room for it.
  Value gradient_of(const OperationStage& stage, const Value& x, const Value& dy);
  /// What was made is what the program ends with, rows and columns as for begin_with.
  void end_with(Index row, Index column);
  /// The gradient of a weight as unfused work: rows x columns, summed over so many tokens.
  void unfused_gradient(Extent rows, Extent columns, Extent tokens);
  /// One op over all that is there, which the unfused operator has too.
  void map(const Mapping& mapping, const std::vector<Value>& of, Extent columns, bool last);
  /// Causal attention of this rank's heads: all queries at once, or as what comes next asks for them.
  void attend(const std::string& dimension);
  MakeRows core_of(BufferId qkv, BufferId attended, DimensionId batch, DimensionId head);

  using Moment = void (ProgramBuilder::*)(const Region&, TensorId, Index, Index);
  void hold(const Value& value, Index row, Index column, Moment moment);
  /// Data parallelism: the tokens of this rank.
  [[nodiscard]] Extent own_tokens() const { return {tokens_.dimension, 1}; }
  [[nodiscard]] Extent shard() const { return {tokens_.dimension, cuts_ * order_.grain()}; }
  /// The rank's place along its ring times `scale`: where its part of a tensor begins.
  [[nodiscard]] Index own(std::int32_t scale = 1) const { return axes_.place(builder_.mesh(), scale); }
  [[nodiscard]] Index own_rows() const { return own(cuts_ * order_.grain()); }
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
  Value made_;    // by the stage before
  Value stream_;  // what residuals add to
  /// A layer whose backward pass is to come.
  struct Layer {
    Value input, weight;
  };
  std::vector<Layer> layers_;  // data parallelism: first to last
  Value gradient_;             // data parallelism: of what the layers left have made
  Done done_;
  MakeRows attend_;  // makes rows of made_, if it is made by query slice
};

}  // namespace commfuse
