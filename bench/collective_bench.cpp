// SPDX-License-Identifier: Apache-2.0
// Measures the cost of pricing one collective; the bar is 100 ns. The sizes cycle through all kernels that NCCL would
// choose.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>

#include "bench/bars.h"
#include "model/config/catalogue.h"
#include "model/cost/communication.h"

namespace commfuse::bench {
namespace {

constexpr double bar_ns = 100.0;
constexpr std::size_t sizes = 16;

std::array<Bytes, sizes> doubled_sizes() {
  std::array<Bytes, sizes> bytes;
  for (std::size_t i = 0; i < sizes; ++i) {
    bytes[i] = Bytes{std::int64_t{1} << (14 + i)};
  }
  return bytes;
}

/// Argument: 0 all-gather, 1 all-reduce, 2 all-to-all.
void price_one_collective(benchmark::State& state) {
  const Machine machine = load_machine("h100-sxm");
  const CollectiveParameters& link = collective_over(machine, 0, 8);
  const std::array<Bytes, sizes> bytes = doubled_sizes();
  std::size_t next = 0;
  std::int64_t priced = 0;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    next = (next + 1) % sizes;
    switch (state.range(0)) {
      case 0: benchmark::DoNotOptimize(all_gather_time(link, 8, bytes[next])); break;
      case 1: benchmark::DoNotOptimize(all_reduce_time(link, 8, bytes[next])); break;
      default: benchmark::DoNotOptimize(all_to_all_time(link, 8, bytes[next])); break;
    }
    ++priced;
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  state.SetLabel(at_most(elapsed.count() / static_cast<double>(priced), bar_ns, "ns"));
}
BENCHMARK(price_one_collective)->DenseRange(0, 2)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace commfuse::bench
