// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/generate.h"

#include <fmt/format.h>

#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

/// A tensor and the buffer that holds this rank's part of it.
struct Value {
  TensorId tensor = no_tensor;
  BufferId buffer{};
};

/// Puts stages together; each takes over what the one before made.
class Assembly {
 public:
  Assembly(std::string name, const Mesh& mesh, int axis, const Strategy& strategy, const StrategyOptions& options)
      : builder_(std::move(name), mesh),
        strategy_(strategy),
        options_(options),
        axis_(axis),
        ranks_(mesh.axes[static_cast<std::size_t>(axis)].extent),
        cuts_(strategy.cuts(options)),
        tokens_{builder_.dimension("tokens", ranks_ * cuts_), ranks_ * cuts_} {}

  void add(const OperationStage& stage, bool last) {
    stage.kind == SiteKind::ag_gemm ? add_ag_gemm(stage, last) : add_gemm_rs(stage, last);
  }

  Program build() && { return std::move(builder_).build(); }

 private:
  void add_ag_gemm(const OperationStage& stage, bool last) {
    const Extent hidden{builder_.dimension(stage.contraction, 1), 1};
    const DimensionId columns = builder_.dimension(stage.columns, ranks_);
    const Extent own_columns{columns, stage.columns_per_rank};
    const Extent all_columns{columns, ranks_ * stage.columns_per_rank};
    if (made_.tensor == no_tensor) {
      begin_with({builder_.input_tensor("x", tokens_, hidden, options_.dtype),
                  builder_.buffer("x", BufferRole::input, shard(), hidden, options_.dtype)},
                 own_rows(), 0);
    }
    if (stage.norm) {
      map({.function = Function::norm, .name = stage.name + ".norm"}, {made_}, hidden, false);
    }
    const TensorId w = builder_.input_tensor(stage.name + ".weight", hidden, all_columns, options_.dtype);
    const TensorId y = builder_.product_tensor(stage.name, made_.tensor, w);
    const BufferId weight =
        builder_.buffer(stage.name + ".weight", BufferRole::weight, hidden, own_columns, options_.dtype);
    const bool ends_here = last && !stage.activation && stage.attention.empty();
    const BufferId output = builder_.buffer(stage.name, ends_here ? BufferRole::output : BufferRole::scratch, tokens_,
                                            own_columns, options_.dtype);
    builder_.initially(builder_.whole(weight), w, 0, along(builder_.mesh(), axis_, 0, stage.columns_per_rank));
    done_ = strategy_.ag_gemm(site(stage, made_.buffer, weight, output), options_);
    builder_.unfused(GemmShape{.m = tokens_, .n = own_columns, .k = hidden, .dtype = options_.dtype});
    made_ = {y, output};
    if (stage.activation) {
      Extent activated = own_columns;
      activated.blocks /= *stage.activation == Function::swiglu ? 2 : 1;
      map({.function = *stage.activation, .name = "activated"}, {made_}, activated, last);
    }
    if (!stage.attention.empty()) {
      attend(stage.attention, last);
    }
    if (last) {
      const std::int32_t width = builder_.buffer_of(made_.buffer).columns.blocks;
      builder_.finally(builder_.whole(made_.buffer), made_.tensor, 0, along(builder_.mesh(), axis_, 0, width));
    }
  }

  void add_gemm_rs(const OperationStage& stage, bool last) {
    const Extent hidden{builder_.dimension(stage.columns, 1), 1};
    const DimensionId contraction = builder_.dimension(stage.contraction, ranks_);
    const Extent own_share{contraction, 1};
    const Index own = along(builder_.mesh(), axis_);
    if (made_.tensor == no_tensor) {
      begin_with({builder_.input_tensor("x", tokens_, {contraction, ranks_}, options_.dtype),
                  builder_.buffer("x", BufferRole::input, tokens_, own_share, options_.dtype)},
                 0, own);
    }
    const TensorId w = builder_.input_tensor(stage.name + ".weight", {contraction, ranks_}, hidden, options_.dtype);
    const TensorId y = builder_.product_tensor(stage.name, made_.tensor, w);
    const BufferId weight =
        builder_.buffer(stage.name + ".weight", BufferRole::weight, own_share, hidden, options_.dtype);
    const bool ends_here = last && !stage.residual;
    const BufferId output = builder_.buffer(stage.name, ends_here ? BufferRole::output : BufferRole::scratch, shard(),
                                            hidden, options_.dtype);
    builder_.initially(builder_.whole(weight), w, own, 0);
    done_ = strategy_.gemm_rs(site(stage, made_.buffer, weight, output), options_);
    builder_.unfused(GemmShape{.m = tokens_, .n = hidden, .k = own_share, .dtype = options_.dtype});
    made_ = {y, output};
    if (stage.residual) {
      map({.function = Function::residual, .name = stage.name + ".residual"}, {made_, stream_}, hidden, last);
      stream_ = made_;
    }
    if (last) {
      builder_.finally(builder_.whole(made_.buffer), made_.tensor, own_rows(), 0);
    }
  }

  /// The input of the first stage; residuals start from it.
  void begin_with(const Value& value, Index row, Index column) {
    made_ = value;
    stream_ = value;
    builder_.initially(builder_.whole(value.buffer), value.tensor, row, column);
  }

  struct Mapping {
    Function function = Function::copy;
    std::string name;
  };

  /// One op over all that is there, which the unfused operator has too.
  void map(const Mapping& mapping, const std::vector<Value>& of, Extent columns, bool last) {
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

  /// All query rows of this rank's heads at once, with a causal mask.
  void attend(const std::string& dimension, bool last) {
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

  [[nodiscard]] Extent shard() const { return {tokens_.dimension, cuts_}; }
  [[nodiscard]] Index own_rows() const { return along(builder_.mesh(), axis_, 0, cuts_); }

  Stage site(const OperationStage& stage, BufferId input, BufferId weight, BufferId output) {
    return {.builder = builder_,
            .name = stage.name,
            .axis = axis_,
            .ranks = ranks_,
            .cuts = cuts_,
            .input = input,
            .weight = weight,
            .output = output,
            .ready = done_};
  }

  ProgramBuilder builder_;
  const Strategy& strategy_;
  const StrategyOptions& options_;
  int axis_;
  std::int32_t ranks_;
  std::int32_t cuts_;
  Extent tokens_;
  Value made_;    // by the stage before
  Value stream_;  // what residuals add to
  Done done_;
};

}  // namespace

Program generate(const Operation& operation, const Mesh& mesh, int axis, const Strategy& strategy,
                 const StrategyOptions& options) {
  check(!operation.stages.empty(), "an operation has a stage");
  const std::string parameters = strategy.describe(options);
  std::string name = fmt::format("{} {}", strategy.name, operation.name);
  if (!parameters.empty()) {
    name = fmt::format("{} ({}) {}", strategy.name, parameters, operation.name);
  }
  Assembly assembly(std::move(name), mesh, axis, strategy, options);
  for (const OperationStage& stage : operation.stages) {
    assembly.add(stage, &stage == &operation.stages.back());
  }
  return std::move(assembly).build();
}

}  // namespace commfuse
