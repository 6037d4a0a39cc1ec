// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/generate.h"

#include <fmt/format.h>

#include <utility>

#include "model/check.h"
#include "model/strategies/assembly.h"
#include "model/strategies/scope.h"

namespace commfuse {

Mesh mesh_of(std::int32_t ranks, const StrategyOptions& options) {
  if (options.inner == 1 || options.inner >= ranks) {
    return {{{"tp", ranks}}};
  }
  check(ranks % options.inner == 0, "the inner ring divides the ranks");
  return {{{"node", ranks / options.inner}, {"tp", options.inner}}};
}

bool is_data_parallel(const Operation& operation) {
  return std::any_of(operation.stages.begin(), operation.stages.end(),
                     [](const OperationStage& stage) { return stage.kind == SiteKind::weight_ag_gemm; });
}

namespace {

Program generate_on(const Operation& operation, const Mesh& mesh, const ShardAxes& axes, const Strategy& strategy,
                    const StrategyOptions& options) {
  const std::string parameters = parameters_of(strategy, kinds_of(operation), options);
  std::string name = fmt::format("{} {}", strategy.name, operation.name);
  if (!parameters.empty()) {
    name = fmt::format("{} ({}) {}", strategy.name, parameters, operation.name);
  }
  Assembly assembly(std::move(name), mesh, axes, operation, strategy, options);
  for (const OperationStage& stage : operation.stages) {
    assembly.add(stage, &stage == &operation.stages.back());
  }
  return std::move(assembly).build();
}

/// Returns the options in canonical form for this many ranks. Aborts unless the strategy has a schedule for them.
StrategyOptions checked_options(const Operation& operation, std::int32_t ranks, const Strategy& strategy,
                                const StrategyOptions& options) {
  const std::vector<SiteKind> kinds = kinds_of(operation);
  check(!kinds.empty(), "an operation has a stage");
  check(applies(strategy, kinds), "the strategy has a schedule for every site");
  check(refusal_of(strategy, kinds, options, ranks).empty(), "the options give a schedule on this many ranks");
  return canonical(strategy, kinds, options, ranks);
}

}  // namespace

Program generate(const Operation& operation, std::int32_t ranks, const Strategy& strategy,
                 const StrategyOptions& options) {
  const StrategyOptions canonical_options = checked_options(operation, ranks, strategy, options);
  Mesh mesh = mesh_of(ranks, canonical_options);
  if (is_data_parallel(operation)) {
    mesh.axes.back().name = "dp";
  }
  const bool nested = mesh.axes.size() > 1;
  return generate_on(operation, mesh, nested ? ShardAxes{.inner = 1, .outer = 0} : ShardAxes{}, strategy,
                     canonical_options);
}

Program generate(const Operation& operation, const Mesh& mesh, int axis, const Strategy& strategy,
                 const StrategyOptions& options) {
  StrategyOptions flat = options;
  flat.inner = 1;
  const ShardAxes axes{.inner = axis, .outer = {}};
  return generate_on(operation, mesh, axes, strategy, checked_options(operation, axes.ranks(mesh), strategy, flat));
}

}  // namespace commfuse
