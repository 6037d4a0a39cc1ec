// SPDX-License-Identifier: Apache-2.0
// Measures the time of one point whose structure is cached, in microseconds: bind, price, simulate (and both bounds),
// analyse. The target at 8 ranks is 100 us.
#include <benchmark/benchmark.h>

#include <array>

#include "model/config/catalogue.h"
#include "sim/point/predict.h"

namespace commfuse {
namespace {

Point mlp_point(std::int32_t ranks) {
  Point point{.model = load_model("llama-3.1-70b"), .machine = load_machine("h100-sxm")};
  point.ranks = ranks;
  point.seq = 32768;
  return point;
}

constexpr std::array names{"serial", "sliced", "commfuse"};

/// Arguments: index into names, ranks.
void predict_one_point(benchmark::State& state) {
  const Strategy& strategy = *find_strategy(names[static_cast<std::size_t>(state.range(0))]);
  const Point point = mlp_point(static_cast<std::int32_t>(state.range(1)));
  StructureCache structures;
  Predictor predictor(structures);
  const StrategyOptions options{.slices = 8, .form = Form::direct};
  predictor.predict(point, strategy, options);  // fills the cache
  for (auto _ : state) {
    benchmark::DoNotOptimize(predictor.predict(point, strategy, options));
  }
  state.SetLabel(std::string{strategy.name} + " " + strategy.describe(options));
}
BENCHMARK(predict_one_point)->ArgsProduct({{0, 1, 2}, {2, 8}})->Unit(benchmark::kMicrosecond);

/// Makes a structure from scratch: generate, prove, order, digest, plan. Argument: ranks.
void make_structure(benchmark::State& state) {
  const Mesh mesh{{{"tp", static_cast<std::int32_t>(state.range(0))}}};
  const Strategy& strategy = commfuse_strategy;
  for (auto _ : state) {
    benchmark::DoNotOptimize(structure_of(generate(operation_of(Scope::mlp, true), mesh, 0, strategy, {})));
  }
}
BENCHMARK(make_structure)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace commfuse
