// SPDX-License-Identifier: Apache-2.0
// Times the exhaustive commands: `commfuse-validate check` on all schedules of up to eight ranks, and `commfuse-sim
// schedule mutate`; 10,000 samples of 64 and of 1,024 ranks under jitter; and `commfuse-validate calibrate` on this
// machine's processor. All of them use all cores, so wall-clock time is measured, not processor time.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/bars.h"
#include "bench/child.h"

namespace commfuse::bench {
namespace {

void run_whole(benchmark::State& state, const std::string& program, const std::vector<std::string>& arguments,
               double bar) {
  std::vector<std::string> words{COMMFUSE_BIN_DIR "/" + program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (auto _ : state) {
    const auto begun = std::chrono::steady_clock::now();
    const Usage usage = usage_of(words);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    state.SetIterationTime(seconds);
    state.counters["processor_s"] = usage.seconds;
    state.SetLabel(at_most(seconds, bar, "s"));
  }
}

void check_all(benchmark::State& state) { run_whole(state, "commfuse-validate", {"check"}, 10.0); }
void mutate_all(benchmark::State& state) { run_whole(state, "commfuse-sim", {"schedule", "mutate"}, 8.0); }
void samples_of_a_point(benchmark::State& state) {
  run_whole(state, "commfuse-sim",
            {"run", "--hardware", "gb200-nvl72-x2", "--ranks", "64", "--strategy", "commfuse", "--jitter", "default",
             "--samples", "10000"},
            0.2);
}
void samples_of_1024_ranks(benchmark::State& state) {
  run_whole(state, "commfuse-sim",
            {"run", COMMFUSE_SOURCE_DIR "/configs/lab/fa.yaml", "--ranks", "1024", "--jitter", "default", "--samples",
             "10000"},
            8.0);
}
void calibrate_here(benchmark::State& state) {
  const std::filesystem::path out =
      std::filesystem::temp_directory_path() / fmt::format("commfuse-bench-calibrate-{}.yaml", ::getpid());
  run_whole(state, "commfuse-validate", {"calibrate", "--out", out.string()}, 10.0);
  std::filesystem::remove(out);
}
BENCHMARK(samples_of_a_point)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(samples_of_1024_ranks)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(calibrate_here)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(check_all)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(mutate_all)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace commfuse::bench
