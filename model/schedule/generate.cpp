// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/generate.h"

#include <fmt/format.h>

#include <utility>

#include "model/check.h"
#include "model/schedule/assembly.h"

namespace commfuse {

Mesh mesh_of(std::int32_t ranks, const StrategyOptions& options) {
  if (options.inner == 1 || options.inner >= ranks) {
    return {{{"tp", ranks}}};
  }
  check(ranks % options.inner == 0, "the inner ring divides the ranks");
  return {{{"node", ranks / options.inner}, {"tp", options.inner}}};
}

namespace {

std::vector<SiteKind> kinds_of_sites(const Operation& operation) {
  std::vector<SiteKind> kinds;
  for (const OperationStage& stage : operation.stages) {
    kinds.push_back(stage.kind);
  }
  return kinds;
}

Program generate_on(const Operation& operation, const Mesh& mesh, const ShardAxes& axes, const Strategy& strategy,
                    const StrategyOptions& options) {
  const std::string parameters = strategy.describe(options);
  std::string name = fmt::format("{} {}", strategy.name, operation.name);
  if (!parameters.empty()) {
    name = fmt::format("{} ({}) {}", strategy.name, parameters, operation.name);
  }
  Assembly assembly(std::move(name), mesh, axes, strategy, options);
  for (const OperationStage& stage : operation.stages) {
    assembly.add(stage, &stage == &operation.stages.back());
  }
  return std::move(assembly).build();
}

/// What the options come to on so many ranks. Aborts unless they give a schedule.
StrategyOptions possible(const Operation& operation, std::int32_t ranks, const Strategy& strategy,
                         const StrategyOptions& options) {
  const std::vector<SiteKind> kinds = kinds_of_sites(operation);
  check(!kinds.empty(), "an operation has a stage");
  check(applies(strategy, kinds), "the strategy has a schedule for every site");
  check(refusal_of(strategy, kinds, options, ranks).empty(), "the options give a schedule on so many ranks");
  return canonical(strategy, kinds, options, ranks);
}

}  // namespace

Program generate(const Operation& operation, std::int32_t ranks, const Strategy& strategy,
                 const StrategyOptions& options) {
  const StrategyOptions here = possible(operation, ranks, strategy, options);
  const Mesh mesh = mesh_of(ranks, here);
  const bool nested = mesh.axes.size() > 1;
  return generate_on(operation, mesh, nested ? ShardAxes{.inner = 1, .outer = 0} : ShardAxes{}, strategy, here);
}

Program generate(const Operation& operation, const Mesh& mesh, int axis, const Strategy& strategy,
                 const StrategyOptions& options) {
  StrategyOptions flat = options;
  flat.inner = 1;
  const ShardAxes axes{.inner = axis, .outer = {}};
  return generate_on(operation, mesh, axes, strategy, possible(operation, axes.ranks(mesh), strategy, flat));
}

}  // namespace commfuse
