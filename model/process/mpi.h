// SPDX-License-Identifier: Apache-2.0
// Detects whether mpirun or srun started this process as one of several, and loads the module that calls MPI.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/process/world.h"

namespace commfuse {

/// Number of this process, from 0, and number of all processes.
struct Started {
  int process = 0;
  int processes = 1;
  friend bool operator==(const Started&, const Started&) = default;
};

/// Detects the launchers of MPI by their environment variables: Open MPI's mpirun; PMI (MPICH, Intel MPI, srun
/// --mpi=pmi2); PMIx under Slurm (srun --mpi=pmix). Returns nullopt without a launcher, as in a Slurm job's plain
/// shell. `variable` is getenv().
std::optional<Started> started_by_mpi(const std::function<const char*(const char*)>& variable);

/// Entry point of the module that calls MPI, if the module is installed and this machine has the library that it needs;
/// otherwise `missing` states the reason and the remedy.
struct MpiModule {
  World* (*open)() = nullptr;
  std::string missing{};
};
MpiModule load_mpi_module();

/// Starts MPI. Throws std::runtime_error when the module is missing, when a call of MPI fails, or when the number of
/// processes that MPI reports differs from the number in `started`.
std::unique_ptr<World> open_world(const Started& started);

}  // namespace commfuse
