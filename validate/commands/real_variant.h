// SPDX-License-Identifier: Apache-2.0
// What `run` measures for real: the schedules, where they ran, and whether they were right.
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

/// Who runs schedules, and what becomes of what each process finds.
struct Runner {
  MakeExecutor checked;  ///< All values count.
  MakeExecutor timed;
  MakeExecutor oracle{};      ///< As VerifyOptions.
  bool library_sums = false;  ///< As VerifyOptions.
  /// Makes one verdict of those of all processes.
  std::function<Verdict(const Verdict& mine)> together = [](const Verdict& mine) { return mine; };
};

/// Ranks and lanes are threads.
Runner on_threads(const std::optional<Pace>& pace);
/// Ranks are processes; the levels of all are on the leader.
Runner on_processes(Crew& crew, int ranks);
/// Virtual ranks on one GPU: levels of all ranks on it, whose oracle is the GPU itself, one op after another; times as
/// the GPU's flags say.
Runner on_gpu(Gpu& gpu);
/// Ranks are processes with a GPU each.
Runner on_gpus(GpuCrew& gpus, Crew& crew, int ranks);

/// A schedule with its data in place. Its levels are those of the same schedule on small matrices, in two orders with
/// chaos; one that misses a level is marked as wrong. Where ranks are processes, all call it.
Variant real_variant(const Prediction& prediction, MeasuredRun run, const Runner& runner);

/// Which MPI, and which process is where. All ranks call it; whole on the leader.
void tell_where(Crew& crew, int ranks, Environment& environment);

}  // namespace commfuse::validate
