// SPDX-License-Identifier: Apache-2.0
// Measures how many configurations of a training step one core predicts per second (`items_per_second`): GPT-3 175B, TP
// 8 x PP 8; micro-batch, interleaving and recomputation change from one configuration to the next. The bar is 2,000
// (Calculon, a closed form in Python, reaches 134). The first benchmark simulates schedules again for each
// configuration, the second looks up shapes that it has seen before.
#include <benchmark/benchmark.h>

#include "model/config/catalogue.h"
#include "model/strategies/strategies.h"
#include "sim/step/step.h"

namespace commfuse {
namespace {

void predict_steps(benchmark::State& state) {
  const bool forgets = state.range(0) != 0;
  const Transformer model = load_model("gpt-3-175b");
  StepPoint point{.model = &model};
  point.plan = {.tensor = 8, .sequence_parallel = true, .pipeline = 8, .global_batch = 64, .seq = 2048};
  const Machine machine = resized(load_machine("dgx-a100-x2"), point.plan);
  point.machine = &machine;
  point.strategies = {&serial_strategy};
  StructureCache structures;
  SiteTimes sites(structures, machine);
  std::int64_t number = 0;
  for (auto _ : state) {
    if (forgets) {
      sites.forget();
    }
    point.plan.micro_batch = std::int64_t{1} << (number % 3);
    point.plan.interleave = number % 2 == 0 ? 1 : 3;
    point.plan.recompute = all_recomputes[static_cast<std::size_t>(number % 3)];
    ++number;
    benchmark::DoNotOptimize(predict_step(point, sites));
  }
  state.SetItemsProcessed(number);
  state.SetLabel(forgets ? "schedules simulated again" : "shapes looked up");
}
BENCHMARK(predict_steps)->Arg(1)->Arg(0)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace commfuse
