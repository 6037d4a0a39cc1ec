// SPDX-License-Identifier: Apache-2.0
// Measures the time for 10,000 candidate layouts: every layout of Llama 3.1 70B, batch 2048, at every count of up to
// 4,096 H100s. The bar is 5 s for 10,000 layouts. `items_per_second` counts layouts; schedules at sites are simulated
// again in every iteration.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "bench/bars.h"
#include "model/config/catalogue.h"
#include "sim/plan/layout_search.h"

namespace commfuse {
namespace {

void search_layouts(benchmark::State& state) {
  constexpr std::int64_t gpus = 4096;
  const Transformer model = load_model("llama-3.1-70b");
  TrainingPlan plan;
  plan.data = gpus;
  const Machine machine = resized(load_machine("dgx-h100-x2"), plan);
  LayoutTerms terms{.memory_share = 0.9, .rank_sigma = 0.02, .communication_sigma = 0.02};
  terms.base = {.global_batch = 2048, .seq = 8192};
  std::size_t layouts = 0;
  std::vector<double> seconds;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    StructureCache structures;
    LayoutSearch search(model, machine, structures, terms);
    for (const std::int64_t count : search.counts(gpus)) {
      benchmark::DoNotOptimize(search.fastest(count, strategies_for_steps()));
    }
    layouts += search.tally().layouts;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    seconds.push_back(taken.count() * 10'000.0 / static_cast<double>(search.tally().layouts));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(layouts));
  state.SetLabel("10,000 layouts: " + bench::at_most(bench::median(seconds), 5.0, "s"));
}
BENCHMARK(search_layouts)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace commfuse
