// SPDX-License-Identifier: Apache-2.0
// Finds this process's number, the number of processes, and their meeting point, from the environment that launchers
// other than MPI's set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace commfuse::validate {

struct Rendezvous {
  int process = 0;
  int processes = 1;
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const Rendezvous&, const Rendezvous&) = default;
};

/// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them; SLURM_PROCID and SLURM_NTASKS under
/// Slurm's srun, where MASTER_ADDR defaults to the first host of SLURM_STEP_NODELIST and MASTER_PORT follows from the
/// job's number; the rank and size of PMI, Open MPI, Flux and JSM, where MASTER_ADDR must be set. Returns nothing
/// without a launcher. Throws ConfigError for inconsistent numbers and a missing MASTER_ADDR. `variable` is getenv().
std::optional<Rendezvous> rendezvous_in(const std::function<const char*(const char*)>& variable);

/// Returns "node003" for "node[003-010,012]", and "a1" for "a1,b[2-3]".
std::string first_host(std::string_view node_list);

}  // namespace commfuse::validate
