// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/check.h"
#include "model/schedule/assembly.h"
#include "model/schedule/scope.h"

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

Program generate(const Operation& operation, std::int32_t ranks, const Strategy& strategy,
                 const StrategyOptions& options) {
  Mesh mesh = mesh_of(ranks, options);
  if (is_data_parallel(operation)) {
    mesh.axes.back().name = "dp";
  }
  return generate(operation, mesh, static_cast<int>(mesh.axes.size()) - 1, strategy, options);
}

Program generate(const Operation& operation, const Mesh& mesh, int axis, const Strategy& strategy,
                 const StrategyOptions& options) {
  check(!operation.stages.empty(), "an operation has a stage");
  const std::vector<SiteKind> kinds = kinds_of(operation);
  check(applies(strategy, kinds), "the strategy has a schedule for every site");
  const StrategyOptions used = canonical(strategy, kinds, options);
  const std::string parameters = parameters_of(strategy, kinds, used);
  std::string name = fmt::format("{} {}", strategy.name, operation.name);
  if (!parameters.empty()) {
    name = fmt::format("{} ({}) {}", strategy.name, parameters, operation.name);
  }
  Assembly assembly(std::move(name), mesh, axis, operation, strategy, used);
  for (const OperationStage& stage : operation.stages) {
    assembly.add(stage, &stage == &operation.stages.back());
  }
  return std::move(assembly).build();
}

}  // namespace commfuse
