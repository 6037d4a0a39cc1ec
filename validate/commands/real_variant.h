// SPDX-License-Identifier: Apache-2.0
// What `run` measures for real: the schedules, where they ran, and whether they were right.
#pragma once

#include <optional>

#include "sim/request.h"
#include "validate/cpu/wall_clock.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/crew.h"

namespace commfuse::validate {

/// A schedule with its data in place. Its levels are those of the same schedule on small matrices, in two orders with
/// chaos; one that misses a level is marked as wrong.
Variant on_threads(const Prediction& prediction, MeasuredRun run, const std::optional<Pace>& pace);
/// The same on processes, with the levels of all ranks on the leader. All ranks call it.
Variant on_processes(const Prediction& prediction, MeasuredRun run, Crew& crew);

/// Which MPI, and which process is where. All ranks call it; whole on the leader.
void tell_where(Crew& crew, int ranks, Environment& environment);

}  // namespace commfuse::validate
