// SPDX-License-Identifier: Apache-2.0
// Measures op-samples per second under jitter, random draws included. No peer (another simulator) reports percentiles
// with confidence intervals.
#include <ctime>

#include "bench/bars.h"
#include "model/config/catalogue.h"
#include "model/cost/draw_keys.h"
#include "sim/lab/lab.h"

namespace commfuse::bench {
namespace {

/// Argument: ranks. One iteration is 1024 samples of FA(P).
void monte_carlo(benchmark::State& state) {
  LabWorkload lab = load_lab(COMMFUSE_SOURCE_DIR "/configs/lab/fa.yaml");
  lab.ranks = static_cast<std::int32_t>(state.range(0));
  const auto program = std::make_shared<const Program>(lab_program(lab));
  const Costs costs = lab_costs(lab, *program);
  const Plan plan = plan_of(lower(program));
  const Tape tape = tape_of(plan.lowered);
  const std::vector<DrawKey> keys = draw_keys(*program);
  const MonteCarloOptions options{.jitter = std::make_shared<const JitterTables>(load_jitter("default")),
                                  .samples = 1024};
  MonteCarlo sampler;
  const std::clock_t begin = std::clock();
  for (auto _ : state) {
    benchmark::DoNotOptimize(sampler.makespans({plan, tape, keys, costs}, options));
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const auto ops = static_cast<double>(program->ops.size()) * static_cast<double>(lab.ranks);
  const double rate = ops * 1024.0 * static_cast<double>(state.iterations()) / seconds;
  state.counters["P"] = static_cast<double>(lab.ranks);
  state.counters["ops"] = ops * 1024.0;
  state.counters["op-samples/s"] = rate;
  state.counters["peak_MiB"] = peak_mib();
  if (lab.ranks == 64) {
    state.SetLabel(at_least(rate, 1e8, "op-samples/s"));
  }
}
BENCHMARK(monte_carlo)->RangeMultiplier(2)->Range(8, 128)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace commfuse::bench
