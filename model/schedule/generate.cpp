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
    check(made_.tensor == no_tensor, "an ag_gemm is the first stage");
    const Extent shard{tokens_.dimension, cuts_};
    const Extent hidden{builder_.dimension(stage.contraction, 1), 1};
    const DimensionId columns = builder_.dimension(stage.columns, ranks_);
    const Extent own_columns{columns, stage.columns_per_rank};
    const Extent all_columns{columns, ranks_ * stage.columns_per_rank};
    const Index own_rows = along(builder_.mesh(), axis_, 0, cuts_);
    const Index own_column = along(builder_.mesh(), axis_, 0, stage.columns_per_rank);

    const TensorId x = builder_.input_tensor("x", tokens_, hidden, options_.dtype);
    const TensorId w = builder_.input_tensor(stage.name + ".weight", hidden, all_columns, options_.dtype);
    const TensorId y = builder_.product_tensor(stage.name, x, w);
    const BufferId input = builder_.buffer("x", BufferRole::input, shard, hidden, options_.dtype);
    const BufferId weight =
        builder_.buffer(stage.name + ".weight", BufferRole::weight, hidden, own_columns, options_.dtype);
    const bool ends_here = last && !stage.activation;
    const BufferId output = builder_.buffer(stage.name, ends_here ? BufferRole::output : BufferRole::scratch, tokens_,
                                            own_columns, options_.dtype);
    builder_.initially(builder_.whole(input), x, own_rows, 0);
    builder_.initially(builder_.whole(weight), w, 0, own_column);
    done_ = strategy_.ag_gemm(site(stage, input, weight, output), options_);
    builder_.unfused(GemmShape{.m = tokens_, .n = own_columns, .k = hidden, .dtype = options_.dtype});
    made_ = {y, output};
    if (stage.activation) {
      activate(*stage.activation, last);
    }
    if (last) {
      const std::int32_t width = builder_.buffer_of(made_.buffer).columns.blocks;
      builder_.finally(builder_.whole(made_.buffer), made_.tensor, 0, along(builder_.mesh(), axis_, 0, width));
    }
  }

  /// One op over all that the products before it made; the unfused operator has it too.
  void activate(Function function, bool last) {
    const TensorId activated = builder_.function_tensor("activated", function, made_.tensor);
    Extent columns = builder_.buffer_of(made_.buffer).columns;
    columns.blocks /= function == Function::swiglu ? 2 : 1;
    const BufferId buffer =
        builder_.buffer("activated", last ? BufferRole::output : BufferRole::scratch, tokens_, columns, options_.dtype);
    done_ = {builder_.elementwise({.function = function,
                                   .inputs = {{builder_.whole(made_.buffer)}},
                                   .out = {builder_.whole(buffer)},
                                   .waits = done_,
                                   .purpose = Purpose::essential})};
    builder_.unfused(
        ElementwiseShape{.function = function, .rows = tokens_, .columns = columns, .dtype = options_.dtype});
    made_ = {activated, buffer};
  }

  void add_gemm_rs(const OperationStage& stage, bool last) {
    check(last, "a gemm_rs is the last stage");
    const Extent shard{tokens_.dimension, cuts_};
    const Extent hidden{builder_.dimension(stage.columns, 1), 1};
    const DimensionId contraction = builder_.dimension(stage.contraction, ranks_);
    const Extent own_share{contraction, 1};
    const Index own = along(builder_.mesh(), axis_);
    if (made_.tensor == no_tensor) {
      made_.tensor = builder_.input_tensor("x", tokens_, {contraction, ranks_}, options_.dtype);
      made_.buffer = builder_.buffer("x", BufferRole::input, tokens_, own_share, options_.dtype);
      builder_.initially(builder_.whole(made_.buffer), made_.tensor, 0, own);
    }
    const TensorId w = builder_.input_tensor(stage.name + ".weight", {contraction, ranks_}, hidden, options_.dtype);
    const TensorId y = builder_.product_tensor(stage.name, made_.tensor, w);
    const BufferId weight =
        builder_.buffer(stage.name + ".weight", BufferRole::weight, own_share, hidden, options_.dtype);
    const BufferId output = builder_.buffer(stage.name, BufferRole::output, shard, hidden, options_.dtype);
    builder_.initially(builder_.whole(weight), w, own, 0);
    done_ = strategy_.gemm_rs(site(stage, made_.buffer, weight, output), options_);
    builder_.unfused(GemmShape{.m = tokens_, .n = hidden, .k = own_share, .dtype = options_.dtype});
    builder_.finally(builder_.whole(output), y, along(builder_.mesh(), axis_, 0, cuts_), 0);
    made_ = {y, output};
  }

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
  Value made_;
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
