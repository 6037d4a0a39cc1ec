// SPDX-License-Identifier: Apache-2.0
// Runs the lab workloads as whole processes, from config to summary. Other simulators (peers) were timed on the same
// workloads. Time is the CPU time of the process, user and system, on all cores; memory is its peak. Comments above
// bars give the best peers' figures on the same kind of machine.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "bench/bars.h"
#include "bench/child.h"

namespace commfuse::bench {
namespace {

struct Workload {
  const char* file = "";
  const char* evaluator = "replay";
  const char* symmetry = "off";
  double bar_ranks = 0.0;  // ranks at which the bars apply
  double bar_seconds = 0.0;
  std::optional<double> bar_mib;
  double messages = 1.0;  // multiple of P (P - 1)
  double tiles = 0.0;     // multiple of P^2
  std::int64_t samples = 1;
};

void lab(benchmark::State& state, const Workload& workload) {
  const auto ranks = static_cast<double>(state.range(0));
  std::vector<double> seconds;
  std::vector<double> mib;
  const std::string simulator = COMMFUSE_BIN_DIR "/commfuse-sim";
  for (auto _ : state) {
    std::vector<std::string> words{simulator,
                                   "run",
                                   fmt::format("{}/configs/lab/{}.yaml", COMMFUSE_SOURCE_DIR, workload.file),
                                   "--ranks",
                                   std::to_string(state.range(0)),
                                   "--evaluator",
                                   workload.evaluator,
                                   "--symmetry",
                                   workload.symmetry,
                                   "--jitter",
                                   "none"};
    if (workload.samples > 1) {
      words.back() = "default";
      words.insert(words.end(), {"--samples", std::to_string(workload.samples)});
    }
    const Usage usage = usage_of(words);
    seconds.push_back(usage.seconds);
    mib.push_back(usage.mib);
    state.SetIterationTime(usage.seconds);
  }
  const double messages = workload.messages * ranks * (ranks - 1);
  const double ops = (messages + workload.tiles * ranks * ranks) * static_cast<double>(workload.samples);
  const double median_seconds = median(seconds);
  state.counters["P"] = ranks;
  state.counters["ops"] = ops;
  state.counters["bytes"] = messages * 32768;
  state.counters["ops/s"] = ops / median_seconds;
  state.counters["peak_MiB"] = median(mib);
  if (ranks == workload.bar_ranks) {
    state.SetLabel(at_most(median_seconds, workload.bar_seconds, "s") +
                   (workload.bar_mib ? ", " + at_most(median(mib), *workload.bar_mib, "MiB") : ""));
  }
}

// The growth exponent needs several rank counts.
void small_and_large(benchmark::internal::Benchmark* bench) {
  bench->RangeMultiplier(2)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(7);
}

// LogGOPSim takes 0.96 s, plus 2.09 s to read its input, and 138 MiB.
BENCHMARK_CAPTURE(lab, fa_replay, {.file = "fa", .bar_ranks = 1024, .bar_seconds = 0.08, .bar_mib = 40, .tiles = 1})
    ->Apply(small_and_large)
    ->Range(512, 4096);
BENCHMARK_CAPTURE(
    lab, fa_engine,
    {.file = "fa", .evaluator = "engine", .bar_ranks = 1024, .bar_seconds = 0.40, .bar_mib = 40, .tiles = 1})
    ->Apply(small_and_large)
    ->Range(256, 1024);
// LogGOPSim takes 1.09 s.
BENCHMARK_CAPTURE(lab, faj_replay, {.file = "faj", .bar_ranks = 1024, .bar_seconds = 0.12, .tiles = 1})
    ->Apply(small_and_large)
    ->Range(256, 1024);
// LogGOPSim takes 2.90 s and 349 MiB; SimGrid takes 10.4 s and 89 MiB.
BENCHMARK_CAPTURE(lab, ag_replay, {.file = "ag", .bar_ranks = 2048, .bar_seconds = 0.15, .bar_mib = 30})
    ->Apply(small_and_large)
    ->Range(512, 4096);
// No peer completes this workload.
BENCHMARK_CAPTURE(lab, fa_symmetric,
                  {.file = "fa", .symmetry = "on", .bar_ranks = 65536, .bar_seconds = 0.05, .tiles = 1})
    ->Apply(small_and_large)
    ->Range(16384, 65536);
// Measures mostly the start and the end of the process.
BENCHMARK_CAPTURE(lab, fa_small, {.file = "fa", .bar_ranks = 8, .bar_seconds = 0.002, .tiles = 1})
    ->Apply(small_and_large)
    ->Range(4, 16);
// Measures percentiles with their intervals, and the causes of the p99. No peer computes these.
BENCHMARK_CAPTURE(lab, fa_10000_samples,
                  {.file = "fa", .bar_ranks = 8, .bar_seconds = 0.10, .tiles = 1, .samples = 10000})
    ->Apply(small_and_large)
    ->Range(4, 16);

}  // namespace
}  // namespace commfuse::bench
