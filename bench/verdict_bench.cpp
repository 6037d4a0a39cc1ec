// SPDX-License-Identifier: Apache-2.0
// Measures how long `commfuse-validate verdict` takes to judge a fleet of N nodes. The nccl-tests log of a node has
// four collectives of 24 sizes each, 14 KB in all.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bench/bars.h"
#include "bench/child.h"
#include "model/config/catalogue.h"
#include "model/expect/message.h"

namespace commfuse::bench {
namespace {

/// Returns the log of one node. Healthy nodes differ a little; one node in 512 is slow.
std::string log_of(const Machine& machine, std::int64_t node) {
  const double factor = (1.0 + 0.002 * static_cast<double>(node % 17 - 8)) * (node % 512 == 7 ? 1.6 : 1.0);
  std::string text;
  for (const LinkOp op : {LinkOp::all_reduce, LinkOp::all_gather, LinkOp::reduce_scatter, LinkOp::all_to_all}) {
    text += fmt::format(
        "# nccl-tests version 2.17.6 nccl-headers=22903 nccl-library=22903\n"
        "# Collective test starting: {}_perf\n# nThread 1 nGpus 8\n# Using devices\n",
        op == LinkOp::all_to_all ? "alltoall" : name_of(op));
    for (int rank = 0; rank < 8; ++rank) {
      text += fmt::format("#  Rank {0:2} Group  0 Pid 42 on node-{1} device {0:2} [0x07] NVIDIA H100\n", rank, node);
    }
    for (std::int64_t bytes = 1024; bytes <= std::int64_t{8} << 30U; bytes *= 2) {
      const double us = factor * to_microseconds(message_time(machine, {op, 8, 1, {bytes}}));
      text += fmt::format(
          "{0:12} {1:12}     float     sum      -1 {2:8.2f} {3:7.2f} {3:7.2f}      0 {2:8.2f} {3:7.2f} "
          "{3:7.2f}      0\n",
          bytes, bytes / 4, us, static_cast<double>(bytes) / us / 1e3);
    }
  }
  return text;
}

void verdict(benchmark::State& state) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("commfuse-bench-verdict-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const Machine machine = load_machine("h100-sxm");
  for (std::int64_t node = 0; node < state.range(0); ++node) {
    std::ofstream(folder / fmt::format("{}.txt", node)) << log_of(machine, node);
  }
  Usage usage;
  for (auto _ : state) {
    // The command exits with 4 because some nodes are bad; `sh` hides that from the benchmark.
    usage = usage_of({"/bin/sh", "-c",
                      fmt::format("{}/commfuse-validate verdict {} --expect h100-sxm; test $? -eq 4", COMMFUSE_BIN_DIR,
                                  folder.string())});
    state.SetIterationTime(usage.seconds);
  }
  std::filesystem::remove_all(folder);
  state.counters["P"] = static_cast<double>(state.range(0));
  state.counters["peak_MiB"] = usage.mib;
  if (state.range(0) == 4096) {
    state.SetLabel(at_most(usage.seconds, 10.0, "s") + ", " + at_most(usage.mib, 1024.0, "MiB"));
  }
}
BENCHMARK(verdict)->Arg(512)->Arg(4096)->UseManualTime()->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace commfuse::bench
