// SPDX-License-Identifier: Apache-2.0
// Puts the stages of an operation together into one program; each takes over what the one before made.
#pragma once

#include <string>
#include <vector>

#include "model/schedule/builder.h"
#include "model/schedule/generate.h"
#include "model/schedule/stage.h"
#include "model/schedule/strategies.h"

namespace commfuse {

/// A file of its own for every kind of site: assembly_*.cpp.
class Assembly {
 public:
  Assembly(std::string name, const Mesh& mesh, const ShardAxes& axes, const Strategy& strategy,
           const StrategyOptions& options);

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

  /// The input of the first stage; residuals start from it.
  void begin_with(const Value& value, Index row, Index column);
  /// One op over all that is there, which the unfused operator has too.
  void map(const Mapping& mapping, const std::vector<Value>& of, Extent columns, bool last);
  /// All query rows of this rank's heads at once, with a causal mask.
  void attend(const std::string& dimension, bool last);

  [[nodiscard]] Extent shard() const { return {tokens_.dimension, cuts_}; }
  /// The rank's place along its ring times `scale`: where its part of a tensor begins.
  [[nodiscard]] Index own(std::int32_t scale = 1) const { return axes_.place(builder_.mesh(), scale); }
  [[nodiscard]] Index own_rows() const { return own(cuts_); }
  Stage site(const OperationStage& stage, BufferId input, BufferId weight, BufferId output);

  ProgramBuilder builder_;
  const Strategy& strategy_;
  const StrategyOptions& options_;
  ShardAxes axes_;
  std::int32_t ranks_;
  std::int32_t cuts_;
  Extent tokens_;
  Value made_;    // by the stage before
  Value stream_;  // what residuals add to
  Done done_;
};

}  // namespace commfuse
