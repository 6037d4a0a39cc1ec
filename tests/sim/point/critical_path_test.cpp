// SPDX-License-Identifier: Apache-2.0
// Runs every schedule with jitter and checks that its critical path is as long as the run and consists of whole ops.
// Each of these ops is binding: if it takes longer, so does the run.
#include "model/analysis/critical_path.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "model/cost/jitter_sampler.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "sim/engine/engine.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

struct Run {
  CriticalPath path;
  Instant makespan;
};

Run simulate(const Plan& plan, const Costs& costs) {
  Recorder recorder(Recorder::Keep::timeline);
  Engine().run(plan, costs, recorder);
  return {critical_path(plan.lowered, costs, recorder.timeline()), recorder.makespan()};
}

/// Returns GEMMs of 10 us, transfers and collectives of `communication`, adds of 1 us, all with jitter; issuing takes
/// `issue`.
Costs some_costs(const Program& program, Duration communication, Duration issue) {
  Jitter jitter;
  jitter.compute_sigma.value = 0.1;
  jitter.communication_sigma.value = 0.2;
  jitter.rank_sigma.value = 0.05;
  Costs costs;
  for (const Op& op : program.ops) {
    const bool essential = op.purpose == Purpose::essential;
    costs.duration.push_back(op.purpose == Purpose::communication ? communication : essential ? Duration{10us} : 1us);
  }
  costs.issue.assign(program.ops.size(), issue);
  return jittered(program, costs, {std::make_shared<const JitterTables>(jitter), 1, draw_keys(program)}, 3);
}

void expect_binding(const Plan& plan, const Costs& costs) {
  const Program& program = *plan.lowered.program;
  const Run run = simulate(plan, costs);
  Instant reached;
  for (const PathStep& step : run.path) {
    ASSERT_EQ(step.from, reached) << program.name;
    reached = step.to;
    const auto op = static_cast<std::size_t>(step.op);
    if (step.kind != PathKind::issue) {
      ASSERT_EQ(step.to - step.from, costs.of(step.rank, op)) << program.name;
      Costs longer = costs;
      longer.by_rank[static_cast<std::size_t>(step.rank) * program.ops.size() + op] += Duration{1};
      ASSERT_GT(simulate(plan, longer).makespan, run.makespan) << program.name << " op " << op;
    }
  }
  ASSERT_EQ(reached, run.makespan) << program.name;
  Duration by_rank{};
  for (const Duration share : shares_of(run.path, program.mesh.ranks()).by_rank) {
    by_rank += share;
  }
  ASSERT_EQ(Instant{by_rank}, run.makespan);
}

TEST(CriticalPath, HasNoGapsAndOnlyBindingStepsForEverySchedule) {
  int schedules = 0;
  for (const Strategy& strategy : strategies()) {
    for (const Scope scope : {Scope::gate_up, Scope::down, Scope::mlp, Scope::layer}) {
      if (!applies(strategy, kinds_of(scope))) {
        continue;
      }
      for (const StrategyOptions& options : strategy.variants({})) {
        const Plan plan = plan_of(lower(std::make_shared<const Program>(
            generate(operation_of(scope, true), mesh_of(4, options), 0, strategy, options))));
        for (const Duration communication : {Duration{3us}, Duration{12us}}) {
          expect_binding(plan, some_costs(*plan.lowered.program, communication, 0us));
          expect_binding(plan, some_costs(*plan.lowered.program, communication, 2us));
        }
        ++schedules;
      }
    }
  }
  EXPECT_GE(schedules, 20);
}

}  // namespace
}  // namespace commfuse
