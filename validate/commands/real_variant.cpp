// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/real_variant.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <utility>

#include "validate/cpu/cpu_executor.h"
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

/// `together` makes one verdict of those of all processes.
Variant ready(const Prediction& prediction, MeasuredRun run, const MakeExecutor& make,
              const std::function<Verdict(const Verdict& mine)>& together) {
  const std::shared_ptr<const Program>& program = prediction.structure->plan.lowered.program;
  constexpr std::uint64_t seed = 1;
  const Sizes small = checked_sizes(*program).front();
  if (integers_stay_exact(*program, small, seed)) {
    const Verdict verdict = together(verify(program, small, {.seed = seed, .orders = 2, .executor = make}));
    run.levels = levels_of(verdict);
    if (!verdict.ok()) {
      run.status = RunStatus::wrong;
      run.message = "its numbers miss a level on small matrices";
    }
  }
  Variant variant{.executor = make(prediction.structure->plan.lowered, prediction.sizes), .run = std::move(run)};
  variant.executor->prepare(input_data(*program, prediction.sizes, DataKind::random, seed));
  return variant;
}

}  // namespace

Variant on_threads(const Prediction& prediction, MeasuredRun run, const std::optional<Pace>& pace) {
  const MakeExecutor threads = [&](Lowered lowered, Sizes sizes) {
    return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{.pace = pace});
  };
  return ready(prediction, std::move(run), threads, [](const Verdict& mine) { return mine; });
}

Variant on_processes(const Prediction& prediction, MeasuredRun run, Crew& crew) {
  const MakeExecutor processes = [&](Lowered lowered, Sizes sizes) {
    return std::make_unique<MpiExecutor>(std::move(lowered), std::move(sizes), crew);
  };
  const int ranks = prediction.structure->program().mesh.ranks();
  return ready(prediction, std::move(run), processes,
               [&](const Verdict& mine) { return of_all_ranks(crew, ranks, mine); });
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
