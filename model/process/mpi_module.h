// SPDX-License-Identifier: Apache-2.0
// Entry point of the module that calls MPI. A program loads the module only when it needs MPI, so it also runs on
// machines without MPI.
#pragma once

#include "model/process/world.h"

namespace commfuse {

/// The number at the end identifies the layout of World; change it whenever World changes.
inline constexpr const char* mpi_module_entry = "commfuse_open_mpi_world_2";
/// Starts MPI in this process. The caller owns the result. Throws std::runtime_error if a call of MPI fails.
using OpenMpiWorld = World* (*)();

}  // namespace commfuse
