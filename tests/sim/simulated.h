// SPDX-License-Identifier: Apache-2.0
// Small programs with made-up costs, run by the engine and shared by the simulator's tests.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "model/analysis/breakdown.h"
#include "model/strategies/generate.h"
#include "sim/engine/engine.h"

namespace commfuse::test {

/// Cost of each kind of op, independent of its size.
struct OpCosts {
  Duration gemm{};
  Duration attention{};
  Duration exchange{};
  Duration collective{};
  Duration elementwise{};
  Duration issue{};
  Duration compute{};                  // All compute of the unsliced schedule.
  std::optional<Duration> gradient{};  // The GEMM of a weight's gradient (transposed first factor). Null: same as gemm.
  std::optional<Duration> copy{};      // Null: same as elementwise.
};

/// Costs of ops on one rank's shard. Parts of a shard, several shards, and adds of more than two operands cost in
/// proportion.
struct ShardCosts {
  Duration shard_gemm{};
  Duration transfer{};
  Duration crossing{};  // A transfer along the first of two axes.
  Duration add{};       // Two operands are read and one is written.
};

/// Returns CommFuse's program for one site, on a flat ring, or on nested rings if the options request them.
inline Program one_site_of(SiteKind kind, std::int32_t ranks, const StrategyOptions& options) {
  const Operation operation{"site", {{.name = "site", .kind = kind, .contraction = "k", .columns = "n"}}};
  return generate(operation, ranks, commfuse_strategy, options);
}

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

inline Costs costs_of(const Program& program, const ShardCosts& costs) {
  Costs result;
  const std::int32_t shard = program.dimensions.front().blocks / program.mesh.ranks();
  struct Priced {
    const Program& program;
    const ShardCosts& costs;
    Duration operator()(const GemmShape& gemm) const { return costs.shard_gemm * gemm.m.blocks; }
    Duration operator()(const ElementwiseShape& add) const {
      return costs.add * (add.inputs + 1) / 3 * add.rows.blocks;
    }
    Duration operator()(const ExchangeShape& exchange) const {
      const bool crosses = program.mesh.axes.size() > 1 && exchange.axis == 0;
      return (crosses ? costs.crossing : costs.transfer) * exchange.rows.blocks;
    }
    Duration operator()(const AttentionShape&) const { return {}; }
    Duration operator()(const CollectiveShape&) const { return {}; }
  };
  for (const Op& op : program.ops) {
    result.duration.push_back(std::visit(Priced{program, costs}, program.shapes[op.shape]) / shard);
    result.issue.emplace_back();
  }
  return result;
}

/// A program that has run, with all its results.
struct Simulated {
  std::shared_ptr<const Program> program;
  Costs costs;
  Recorder recorder{Recorder::Keep::timeline};

  Simulated(Program made, const OpCosts& op_costs) : Simulated(std::move(made), op_costs, nullptr) {}
  Simulated(Program made, const ShardCosts& shard_costs)
      : program(std::make_shared<const Program>(std::move(made))), costs(costs_of(*program, shard_costs)) {
    Engine{}.run(plan_of(lower(program)), costs, recorder);
  }

  /// Runs the program. `change` may set individual costs before the run.
  Simulated(Program made, const OpCosts& op_costs, void (*change)(Costs&))
      : program(std::make_shared<const Program>(std::move(made))), costs(costs_of(*program, op_costs)) {
    if (change != nullptr) {
      change(costs);
    }
    run();
  }

  /// Runs again, after `costs` were changed.
  void run() { Engine{}.run(plan_of(lower(program)), costs, recorder); }

  [[nodiscard]] Duration makespan() const { return recorder.makespan().time_since_epoch(); }
  [[nodiscard]] Breakdown breakdown() const { return analyse(*program, costs, recorder).critical; }
  /// Returns start and end of one op on one rank, in picoseconds; {-1, -1} if the rank does not run it.
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
