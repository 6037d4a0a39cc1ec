// SPDX-License-Identifier: Apache-2.0
// What `run` measures on processes: the schedules, where they ran, and whether they were right.
#pragma once

#include "sim/request.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/crew.h"

namespace commfuse::validate {

/// A schedule with its data in place. Its levels are those of the same schedule on small matrices, in one order with
/// chaos, and of all ranks on the leader; one that misses a level is marked as wrong. All ranks call it.
Variant on_processes(const Prediction& prediction, MeasuredRun run, Crew& crew);

/// Which MPI, and which process is where. All ranks call it; whole on the leader.
void tell_where(Crew& crew, int ranks, Environment& environment);

}  // namespace commfuse::validate
