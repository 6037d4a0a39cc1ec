// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/real_variant.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "validate/commands/gpu.h"
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

Variant real_variant(const Prediction& prediction, MeasuredRun run, const Runner& runner, const SmallCheck& small) {
  const std::shared_ptr<const Program>& program = prediction.structure->plan.lowered.program;
  if (integers_stay_exact(*program, small.sizes, small.seed)) {
    const Verdict verdict = runner.together(verify(program, small.sizes,
                                                   {.seed = small.seed,
                                                    .orders = 2,
                                                    .executor = runner.checked,
                                                    .oracle = runner.oracle,
                                                    .library_sums = runner.library_sums}));
    run.levels = levels_of(verdict);
    if (!verdict.ok()) {
      run.status = RunStatus::wrong;
      run.message = "its results on small matrices are wrong";
    }
  }
  Variant variant{.executor = runner.timed(prediction.structure->plan.lowered, prediction.sizes),
                  .run = std::move(run)};
  if (!variant.executor->holds_own_data()) {
    variant.executor->prepare(input_data(*program, prediction.sizes, DataKind::random, small.seed));
  }
  return variant;
}

CpuOptions real_work(const std::optional<Pace>& pace) { return {.pace = pace, .patience = std::chrono::hours(24)}; }

Runner on_threads(const std::optional<Pace>& pace) {
  const MakeExecutor threads = [pace](Lowered lowered, Sizes sizes) {
    return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), real_work(pace));
  };
  return {.checked = threads, .timed = threads};
}

Runner on_processes(Crew& crew, int ranks) {
  const MakeExecutor processes = [&crew](Lowered lowered, Sizes sizes) {
    return std::make_unique<MpiExecutor>(std::move(lowered), std::move(sizes), crew);
  };
  return {.checked = processes, .timed = processes, .together = [&crew, ranks](const Verdict& mine) {
            return of_all_ranks(crew, ranks, mine);
          }};
}

Runner on_gpu(Gpu& gpu) { return {.checked = gpu.all_ranks(), .timed = gpu.timed(), .oracle = gpu.all_ranks(true)}; }

Runner on_gpus(GpuCrew& gpus, Crew& crew, int ranks) {
  return {.checked = gpus.checked(),
          .timed = gpus.timed(),
          .oracle = gpus.oracle(),
          .library_sums = gpus.library_sums(),
          .together = [&crew, ranks](const Verdict& mine) { return of_all_ranks(crew, ranks, mine); }};
}

void record_hosts(Crew& crew, int ranks, Environment& environment) {
  PayloadWriter writer;
  writer.put_text(crew.world().host());
  environment.mpi = crew.world().library();
  for (const Payload& report : crew.gather(ranks, writer.take())) {
    environment.hosts.push_back(PayloadReader(report).get_text());
  }
}

}  // namespace commfuse::validate
