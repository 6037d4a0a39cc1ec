// SPDX-License-Identifier: Apache-2.0
// Measures layers per second: one strategy, the forward pass of all GEMM sites of a layer, priced, simulated and
// analysed, with static interference and without I/O. llm-analysis reaches 5,494 per second with a formula, LogGOPSim
// 630.
#include <array>
#include <ctime>

#include "bench/bars.h"
#include "model/config/catalogue.h"
#include "sim/point/predict.h"

namespace commfuse::bench {
namespace {

constexpr std::array names{"serial", "sliced", "commfuse"};

/// The sequence length changes from point to point, so that only the structure can be cached.
void layer_points(benchmark::State& state, Evaluator evaluator, double bar) {
  const Strategy& strategy = *find_strategy(names[static_cast<std::size_t>(state.range(0))]);
  Point point{.model = load_model("llama-3.1-70b"), .machine = load_machine("h100-sxm"), .scope = Scope::layer};
  point.simulation.evaluator = evaluator;
  StructureCache structures;
  Predictor predictor(structures);
  const StrategyOptions options{.slices = 4};
  const std::size_t ops = predictor.predict(point, strategy, options).structure->program().ops.size();
  const std::clock_t begin = std::clock();
  for (auto _ : state) {
    point.seq = 8192 + (point.seq + 1024) % 8192;
    benchmark::DoNotOptimize(predictor.predict(point, strategy, options));
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const double rate = static_cast<double>(state.iterations()) / seconds;
  state.counters["ops"] = static_cast<double>(ops) * point.ranks;
  state.counters["points/s"] = rate;
  state.counters["peak_MiB"] = peak_mib();
  state.SetLabel(std::string{strategy.name} + ": " + at_least(rate, bar, "points/s"));
}
BENCHMARK_CAPTURE(layer_points, replay, Evaluator::replay, 1'000'000.0)
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(layer_points, engine, Evaluator::engine, 10'000.0)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace commfuse::bench
