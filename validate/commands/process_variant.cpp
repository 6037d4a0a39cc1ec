// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/process_variant.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "validate/mpi/mpi_executor.h"
#include "validate/reference/check_point.h"
#include "validate/reference/data.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {

namespace {

std::vector<LevelResult> levels_of(const Verdict& verdict) {
  std::vector<LevelResult> levels;
  const auto add = [&](const char* name, const std::optional<Tally>& tally) {
    if (tally) {
      levels.push_back({name, tally->elements, tally->wrong, tally->worst});
    }
  };
  add("T0", verdict.moved);
  add("T1", verdict.same_order);
  add("T-int", verdict.integers);
  add("T2", verdict.bitwise);
  add("T3", verdict.bound);
  return levels;
}

}  // namespace

Variant on_processes(const Prediction& prediction, MeasuredRun run, Crew& crew) {
  const std::shared_ptr<const Program>& program = prediction.structure->plan.lowered.program;
  const MakeExecutor processes = [&](Lowered lowered, Sizes sizes) {
    return std::make_unique<MpiExecutor>(std::move(lowered), std::move(sizes), crew);
  };
  constexpr std::uint64_t seed = 1;
  const Sizes small = checked_sizes(*program).front();
  if (integers_stay_exact(*program, small, seed)) {
    const Verdict mine = verify(program, small, {.seed = seed, .orders = 2, .executor = processes});
    const Verdict all = of_all_ranks(crew, program->mesh.ranks(), mine);
    run.levels = levels_of(all);
    if (!all.ok()) {
      run.status = RunStatus::wrong;
      run.message = "its numbers miss a level on small matrices";
    }
  }
  Variant variant{.executor = processes(prediction.structure->plan.lowered, prediction.sizes), .run = std::move(run)};
  variant.executor->prepare(input_data(*program, prediction.sizes, DataKind::random, seed));
  return variant;
}

void tell_where(Crew& crew, int ranks, Environment& environment) {
  PayloadWriter writer;
  writer.put_text(crew.world().host());
  environment.mpi = crew.world().library();
  for (const Payload& report : crew.gather(ranks, writer.take())) {
    environment.hosts.push_back(PayloadReader(report).get_text());
  }
}

}  // namespace commfuse::validate
