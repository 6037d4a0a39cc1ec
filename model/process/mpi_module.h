// SPDX-License-Identifier: Apache-2.0
// The door of the module that knows MPI: the program loads it where it is needed, and so starts, and even runs,
// without.
#pragma once

#include "model/process/world.h"

namespace commfuse {

/// Named after the shape of World: another number where that changes.
inline constexpr const char* mpi_module_entry = "commfuse_open_mpi_world_2";
/// Starts MPI in this process. Throws std::runtime_error.
using OpenMpiWorld = World* (*)();

}  // namespace commfuse
