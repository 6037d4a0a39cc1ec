// SPDX-License-Identifier: Apache-2.0
// Measures `commfuse-sim tune` of Llama 3.1 405B on 16,384 H100s as a process: at 512 sequences per step, which are 4M
// tokens, and at 16,384, where pipelines have thousands of passes. The bar is 2 s.
#include <string>

#include "bench/bars.h"
#include "bench/child.h"

namespace commfuse::bench {
namespace {

void tune(benchmark::State& state) {
  Usage usage;
  for (auto _ : state) {
    usage = usage_of({COMMFUSE_BIN_DIR "/commfuse-sim", "tune", "--model", "llama-3.1-405b", "--cluster", "dgx-h100",
                      "--gpus", "16384", "--seq", "8192", "--batch", std::to_string(state.range(0))});
    state.SetIterationTime(usage.seconds);
  }
  state.counters["peak_MiB"] = usage.mib;
  state.SetLabel(at_most(usage.seconds, 2.0, "s"));
}
BENCHMARK(tune)->Arg(512)->Arg(16384)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace commfuse::bench
