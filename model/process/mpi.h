// SPDX-License-Identifier: Apache-2.0
// Whether this process is one of several that mpirun or srun started, and the module that knows MPI.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/process/world.h"

namespace commfuse {

/// Which of how many processes this is.
struct Started {
  int process = 0;
  int processes = 1;
  friend bool operator==(const Started&, const Started&) = default;
};

/// By what launchers of MPI leave in the environment: Open MPI's mpirun; PMI (MPICH, Intel MPI, srun --mpi=pmi2); PMIx
/// under Slurm (srun --mpi=pmix). Nothing where none did, as in a Slurm job's plain shell. `variable` is getenv().
std::optional<Started> started_by_mpi(const std::function<const char*(const char*)>& variable);

/// The module that knows MPI, if it lies where it belongs and this machine has the library it needs; else why not, and
/// what to do.
struct MpiModule {
  World* (*open)() = nullptr;
  std::string missing{};
};
MpiModule load_mpi_module();

/// Starts MPI. Throws std::runtime_error when it is missing or counts other processes than were started.
std::unique_ptr<World> open_world(const Started& started);

}  // namespace commfuse
