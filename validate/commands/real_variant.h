// SPDX-License-Identifier: Apache-2.0
// Shared by commands that run schedules for real: the schedules, where they ran, and whether they were right.
#pragma once

#include <functional>
#include <optional>

#include "sim/point/request.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/crew.h"
#include "validate/pace.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {

class Gpu;
class GpuCrew;

/// The executors of schedules, and the function that joins the findings of processes.
struct Runner {
  MakeExecutor checked;  ///< All values count.
  MakeExecutor timed;
  MakeExecutor oracle{};      ///< Same as in VerifyOptions.
  bool library_sums = false;  ///< Same as in VerifyOptions.
  /// Joins the verdicts of all processes into one.
  std::function<Verdict(const Verdict& mine)> together = [](const Verdict& mine) { return mine; };
};

/// Makes a runner whose ranks and lanes are threads.
Runner on_threads(const std::optional<Pace>& pace);
/// Makes a runner whose ranks are processes. The leader has the levels of all.
Runner on_processes(Crew& crew, int ranks);
/// Makes a runner of virtual ranks on one GPU. The GPU itself, one op after another, is the oracle for the levels of
/// all ranks. Times follow the GPU's flags.
Runner on_gpu(Gpu& gpu);
/// Makes a runner whose ranks are processes with a GPU each.
Runner on_gpus(GpuCrew& gpus, Crew& crew, int ranks);

/// Returns a schedule with its data in place. Its levels are those of the same schedule on small matrices, in two
/// orders with chaos; a schedule that misses a level is marked as wrong. Where ranks are processes, all call it.
Variant real_variant(const Prediction& prediction, MeasuredRun run, const Runner& runner);

/// Writes down which MPI runs, and which process is where. All ranks call it; the leader has everything.
void tell_where(Crew& crew, int ranks, Environment& environment);

}  // namespace commfuse::validate
