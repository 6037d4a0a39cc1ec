// SPDX-License-Identifier: Apache-2.0
// Entry point of the module that knows MPI. The program loads the module only when it needs it, so it starts, and even
// runs, without MPI.
#pragma once

#include "model/process/world.h"

namespace commfuse {

/// The number stands for the layout of World and changes with it.
inline constexpr const char* mpi_module_entry = "commfuse_open_mpi_world_2";
/// Starts MPI in this process. Throws std::runtime_error.
using OpenMpiWorld = World* (*)();

}  // namespace commfuse
