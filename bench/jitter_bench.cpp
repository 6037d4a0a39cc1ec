// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a draw, and of building the tables. The bar is 4 ns per (op, rank, sample) with AVX2, including
// Philox, table and rounding, for 64 ranks and 16 samples at a time. To find a problem, compare the times with and
// without stalls.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <vector>

#include "model/cost/jitter_sampler.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// Arguments: ranks, stalls in a thousand ops, 1 for the portable C++ code.
void draw_op_times(benchmark::State& state) {
  constexpr std::size_t lanes = 16;
  constexpr std::uint32_t ops = 64;
  const auto ranks = static_cast<std::int32_t>(state.range(0));
  Jitter jitter;
  jitter.compute_sigma.value = 0.01;
  jitter.rank_sigma.value = 0.02;
  jitter.stall_probability.value = static_cast<double>(state.range(1)) / 1000;
  jitter.stall_scale.value = 5us;
  jitter.stall_shape.value = 2.5;
  JitterDraws draws{.tables = std::make_shared<const JitterTables>(jitter)};
  for (std::uint32_t op = 0; op < ops; ++op) {
    draws.keys.push_back({.step = op});
  }
  JitterSampler sampler(draws, ranks, lanes, state.range(2) == 1 ? portable_jitter_lanes() : fastest_jitter_lanes());
  std::vector<double> times(static_cast<std::size_t>(ranks) * lanes);
  const std::vector<double> price{1e8};
  std::uint64_t first = 0;
  for (auto _ : state) {
    sampler.begin(first);
    for (std::size_t op = 0; op < ops; ++op) {
      sampler.sample(op, price, times.data());
      benchmark::DoNotOptimize(times.data());
    }
    first += lanes;
  }
  const auto drawn = static_cast<double>(state.iterations()) * ops * static_cast<double>(times.size());
  state.counters["draws/s"] = benchmark::Counter(drawn, benchmark::Counter::kIsRate);
  state.counters["s/draw"] = benchmark::Counter(drawn, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(draw_op_times)->ArgsProduct({{8, 64, 1024}, {0, 1}, {0, 1}});

void build_tables(benchmark::State& state) {
  Jitter jitter;
  jitter.compute_sigma.value = 0.01;
  jitter.communication_sigma.value = 0.01;
  jitter.rank_sigma.value = 0.02;
  for (auto _ : state) {
    benchmark::DoNotOptimize(JitterTables(jitter));
  }
}
BENCHMARK(build_tables)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace commfuse
