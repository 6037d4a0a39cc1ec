// SPDX-License-Identifier: Apache-2.0
// Measures the cost of pricing one GEMM, in nanoseconds, over shapes from decoding to a long prefill. There are too
// many shapes for branch prediction to learn. The target is 200 ns.
#include <benchmark/benchmark.h>

#include <vector>

#include "model/config/catalogue.h"
#include "model/cost/gemm.h"

namespace commfuse {
namespace {

std::vector<GemmSize> shapes() {
  std::vector<GemmSize> sizes;
  for (const std::int64_t m : {1, 16, 96, 513, 1024, 2049, 4096, 8192, 32768}) {
    for (const std::int64_t n : {256, 1024, 3584, 8192, 28672}) {
      for (const std::int64_t k : {512, 1024, 3584, 8192, 28672}) {
        sizes.push_back({.m = m, .n = n, .k = k});
      }
    }
  }
  return sizes;
}

void price_one_gemm(benchmark::State& state) {
  const Accelerator accelerator = load_machine("h100-sxm").accelerator;
  const std::vector<GemmSize> sizes = shapes();
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(estimate_gemm(accelerator, sizes[next], accelerator.sms));
    next = next + 1 < sizes.size() ? next + 1 : 0;
  }
}
BENCHMARK(price_one_gemm);

}  // namespace
}  // namespace commfuse
