// SPDX-License-Identifier: Apache-2.0
// Finds this process's number, the number of processes, and their meeting point in the environment that launchers other
// than MPI set.
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

/// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which torchrun sets; if TORCHELASTIC_USE_AGENT_STORE is True,
/// torchrun itself listens on MASTER_PORT, and the port is the next one. Under Slurm's srun reads SLURM_PROCID and
/// SLURM_NTASKS; there MASTER_ADDR defaults to the first host of SLURM_STEP_NODELIST, and MASTER_PORT follows from the
/// job's number. Also reads the rank and size of PMI, Open MPI, Flux and JSM, for which MASTER_ADDR must be set.
/// Returns nothing without a launcher. Throws ConfigError for inconsistent numbers and a missing MASTER_ADDR.
/// `variable` is getenv().
std::optional<Rendezvous> rendezvous_in(const std::function<const char*(const char*)>& variable);

/// Returns "node003" for "node[003-010,012]", and "a1" for "a1,b[2-3]".
std::string first_host(std::string_view node_list);

}  // namespace commfuse::validate
