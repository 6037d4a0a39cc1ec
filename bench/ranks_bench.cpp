// SPDX-License-Identifier: Apache-2.0
// Measures processor time and peak memory of whole processes with many ranks on nodes of eight: the shipped cluster of
// two DGX H100, with as many nodes as the ranks need.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/bars.h"
#include "bench/child.h"

namespace commfuse::bench {
namespace {

/// A cluster file, deleted with this object.
class ClusterFile {
 public:
  explicit ClusterFile(std::int64_t nodes)
      : path_(std::filesystem::temp_directory_path() / fmt::format("commfuse-bench-{}.yaml", ::getpid())) {
    std::ifstream shipped(COMMFUSE_SOURCE_DIR "/configs/clusters/dgx-h100-x2.yaml");
    std::stringstream text;
    text << shipped.rdbuf();
    std::string changed = text.str();
    const std::string two = "\nnodes: 2\n";
    changed.replace(changed.find(two), two.size(), fmt::format("\nnodes: {}\n", nodes));
    std::ofstream(path_) << changed;
  }
  ClusterFile(const ClusterFile&) = delete;
  ClusterFile& operator=(const ClusterFile&) = delete;
  ~ClusterFile() { std::filesystem::remove(path_); }

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// Runs the MLP on the benchmark's number of ranks; returns the medians of all iterations.
Usage run_mlp(benchmark::State& state, const std::vector<std::string>& flags) {
  const ClusterFile cluster(state.range(0) / 8);
  std::vector<std::string> words{COMMFUSE_BIN_DIR "/commfuse-sim", "run",   "--hardware", cluster.path(), "--ranks",
                                 std::to_string(state.range(0)),   "--seq", "8K"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<double> seconds;
  std::vector<double> mib;
  for (auto _ : state) {
    const Usage usage = usage_of(words);
    seconds.push_back(usage.seconds);
    mib.push_back(usage.mib);
    state.SetIterationTime(usage.seconds);
  }
  state.counters["P"] = static_cast<double>(state.range(0));
  state.counters["peak_MiB"] = median(mib);
  return {median(seconds), median(mib)};
}

/// Every rank sends to every other rank on four lanes, with dynamic sharing of links. Arguments: ranks, the bar in
/// milliseconds.
void contention_on_rails(benchmark::State& state) {
  const Usage usage =
      run_mlp(state, {"--interference", "dynamic", "--strategy", "commfuse", "--form", "direct", "--lanes", "4"});
  state.SetLabel(at_most(usage.seconds, static_cast<double>(state.range(1)) / 1000.0, "s"));
}
BENCHMARK(contention_on_rails)
    ->ArgNames({"ranks", "bar_ms"})
    ->Args({32, 20})
    ->Args({64, 80})
    ->Args({128, 400})
    ->Args({256, 2000})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);

void all_strategies(benchmark::State& state) {
  const Usage usage = run_mlp(state, {});
  if (state.range(0) == 1024) {
    state.SetLabel(at_most(usage.seconds, 1.5, "s") + ", " + at_most(usage.mib, 200.0, "MiB"));
  }
}
BENCHMARK(all_strategies)
    ->RangeMultiplier(2)
    ->Range(256, 1024)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);

}  // namespace
}  // namespace commfuse::bench
