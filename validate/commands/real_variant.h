// SPDX-License-Identifier: Apache-2.0
// Shared by commands that run schedules for real: the schedules, where they ran, and whether their results are correct.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/point/request.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/crew.h"
#include "validate/pace.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {

class Gpu;
class GpuCrew;

/// The executors of schedules, and the function that joins the verdicts of processes.
struct Runner {
  MakeExecutor checked;  ///< Makes executors whose values are checked.
  MakeExecutor timed;
  MakeExecutor oracle{};      ///< VerifyOptions::oracle
  bool library_sums = false;  ///< VerifyOptions::library_sums
  /// Joins the verdicts of all processes into one.
  std::function<Verdict(const Verdict& mine)> together = [](const Verdict& mine) { return mine; };
};

/// Returns the options of ranks that are threads and do real work. One GEMM of a large point may take minutes, and ends
/// by itself. Deadlocks are detected at once, so long patience costs nothing.
CpuOptions real_work(const std::optional<Pace>& pace);
/// Makes a runner whose ranks and lanes are threads.
Runner on_threads(const std::optional<Pace>& pace);
/// Makes a runner whose ranks are processes. The leader has the levels of all ranks.
Runner on_processes(Crew& crew, int ranks);
/// Makes a runner of virtual ranks on one GPU. The oracle for the levels of all ranks is the GPU itself, running one op
/// after another. Times follow the GPU's flags.
Runner on_gpu(Gpu& gpu);
/// Makes a runner whose ranks are processes with a GPU each.
Runner on_gpus(GpuCrew& gpus, Crew& crew, int ranks);

/// Small sizes with which the levels of a schedule are measured, and the seed of all data.
struct SmallCheck {
  Sizes sizes;
  std::uint64_t seed = 1;
};

/// Returns a schedule with its data in place. Its levels are measured with the same schedule on small matrices, in two
/// orders with chaos; a schedule that misses a level is marked as wrong. Levels are not measured if the small sizes
/// make sums of integers inexact. Where ranks are processes, all of them must call it.
Variant real_variant(const Prediction& prediction, MeasuredRun run, const Runner& runner, const SmallCheck& small);

/// Records the library that connects the processes (MPI or TCP), and the host of each process. All ranks must call it;
/// only the leader gets all hosts.
void record_hosts(Crew& crew, int ranks, Environment& environment);

}  // namespace commfuse::validate
