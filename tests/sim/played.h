// SPDX-License-Identifier: Apache-2.0
// Small programs with made-up costs, played by the engine: the common ground of the simulator's tests.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "model/analysis/breakdown.h"
#include "model/schedule/generate.h"
#include "sim/engine/engine.h"

namespace commfuse::test {

/// What each kind of op costs, whatever its size.
struct OpCosts {
  Duration gemm{};
  Duration attention{};
  Duration exchange{};
  Duration collective{};
  Duration elementwise{};
  Duration issue{};
  Duration compute{};                  // unsliced
  std::optional<Duration> gradient{};  // a product with a transposed first factor, a weight's gradient; else as gemm
  std::optional<Duration> copy{};      // else as elementwise
};

inline Program one_site(const char* strategy, SiteKind kind, std::int32_t ranks, const StrategyOptions& options = {}) {
  Operation operation{"site", {{.name = "site", .kind = kind, .contraction = "k", .columns = "n"}}};
  if (kind == SiteKind::mlp_ar) {
    operation.stages.front().activation = Function::gelu;
  }
  return generate(operation, Mesh{{{"tp", ranks}}}, 0, *find_strategy(strategy), options);
}

inline Costs costs_of(const Program& program, const OpCosts& costs) {
  Costs result;
  result.compute = costs.compute;
  for (const Op& op : program.ops) {
    switch (op.kind) {
      case OpKind::gemm: {
        const bool gradient = std::get<GemmShape>(program.shapes[op.shape]).transpose_a;
        result.duration.push_back(gradient ? costs.gradient.value_or(costs.gemm) : costs.gemm);
        break;
      }
      case OpKind::attention: result.duration.push_back(costs.attention); break;
      case OpKind::elementwise: {
        const bool copies = std::get<ElementwiseShape>(program.shapes[op.shape]).function == Function::copy;
        result.duration.push_back(copies ? costs.copy.value_or(costs.elementwise) : costs.elementwise);
        break;
      }
      case OpKind::exchange: result.duration.push_back(costs.exchange); break;
      case OpKind::collective: result.duration.push_back(costs.collective); break;
    }
    result.issue.push_back(costs.issue);
  }
  return result;
}

/// A program that was played, with all that came out.
struct Played {
  std::shared_ptr<const Program> program;
  Costs costs;
  Recorder recorder{Recorder::Keep::timeline};

  Played(Program made, const OpCosts& op_costs) : Played(std::move(made), op_costs, nullptr) {}

  /// `change` may set single costs before the run.
  Played(Program made, const OpCosts& op_costs, void (*change)(Costs&))
      : program(std::make_shared<const Program>(std::move(made))), costs(costs_of(*program, op_costs)) {
    if (change != nullptr) {
      change(costs);
    }
    play();
  }

  /// Again, after `costs` were changed.
  void play() { Engine{}.run(plan_of(lower(program)), costs, recorder); }

  [[nodiscard]] Duration makespan() const { return recorder.makespan().time_since_epoch(); }
  [[nodiscard]] Breakdown breakdown() const { return analyse(*program, costs, recorder).critical; }
  /// Start and end of one op on one rank, in picoseconds.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> span(Rank rank, std::int32_t op) const {
    for (const OpSpan& span : recorder.timeline()) {
      if (span.rank == rank && span.op == OpId{op}) {
        return {span.start.time_since_epoch().count(), span.end.time_since_epoch().count()};
      }
    }
    return {-1, -1};
  }
};

}  // namespace commfuse::test
