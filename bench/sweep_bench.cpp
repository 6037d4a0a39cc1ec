// SPDX-License-Identifier: Apache-2.0
// Measures how fast a sweep fills its store, in wall-clock time: it runs configs/sweeps/million.yaml, with a million
// points, as a process on two cores, and compares the times on one and on two cores. P is the number of points; a time
// that grows faster than P indicates a problem.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "bench/bars.h"
#include "bench/child.h"

namespace commfuse::bench {
namespace {

struct SweepCost {
  double seconds = 0.0;  // wall-clock time
  double mib = 0.0;
};

/// Runs the first `lengths` of the file's 125 sequence lengths, each with 8,000 points.
SweepCost run_sweep(std::int64_t lengths, int threads, const std::string& uncertainty = "off") {
  const std::filesystem::path out =
      std::filesystem::temp_directory_path() / fmt::format("commfuse-bench-sweep-{}", ::getpid());
  const std::string program = COMMFUSE_BIN_DIR "/commfuse-sim";
  const std::string file = COMMFUSE_SOURCE_DIR "/configs/sweeps/million.yaml";
  const auto begun = std::chrono::steady_clock::now();
  const Usage usage = usage_of({program, "sweep", file, "--out", out.string(), "--progress", "none", "--axis",
                                fmt::format("seq=4K..{}K+4K", 4 * lengths), "-j", std::to_string(threads), "--set",
                                "uncertainty=" + uncertainty});
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
  std::filesystem::remove_all(out);
  return {wall.count(), usage.mib};
}

void sweep(benchmark::State& state) {
  SweepCost simulated;
  for (auto _ : state) {
    simulated = run_sweep(state.range(0), 2);
    state.SetIterationTime(simulated.seconds);
  }
  const double points = 8000.0 * static_cast<double>(state.range(0));
  state.counters["P"] = points;
  state.counters["points/s"] = points / simulated.seconds;
  state.counters["peak_MiB"] = simulated.mib;
  if (state.range(0) == 125) {
    state.SetLabel(at_most(simulated.seconds, 3.0, "s") + ", " + at_most(simulated.mib, 300.0, "MiB"));
  }
}
BENCHMARK(sweep)->Arg(5)->Arg(25)->Arg(125)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);

void sweep_with_uncertainty(benchmark::State& state) {
  SweepCost simulated;
  for (auto _ : state) {
    simulated = run_sweep(125, 2, "on");
    state.SetIterationTime(simulated.seconds);
  }
  state.counters["peak_MiB"] = simulated.mib;
  state.SetLabel(at_most(simulated.seconds, 20.0, "s") + ", " + at_most(simulated.mib, 150.0, "MiB"));
}
BENCHMARK(sweep_with_uncertainty)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);

void sweep_on_two_cores(benchmark::State& state) {
  double speedup = 0.0;
  for (auto _ : state) {
    const double one_core_seconds = run_sweep(25, 1).seconds;
    const double two_core_seconds = run_sweep(25, 2).seconds;
    speedup = std::max(speedup, one_core_seconds / two_core_seconds);
    state.SetIterationTime(two_core_seconds);
  }
  state.counters["speedup"] = speedup;
  state.SetLabel(at_least(speedup, 1.8, "x one core"));
}
BENCHMARK(sweep_on_two_cores)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(3);

}  // namespace
}  // namespace commfuse::bench
