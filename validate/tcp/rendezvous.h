// SPDX-License-Identifier: Apache-2.0
// Which of how many processes this is, and where they meet, by what launchers other than MPI's leave in the
// environment.
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
  int local = 0;  ///< Among the processes of this machine: which GPU is its own.
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const Rendezvous&, const Rendezvous&) = default;
};

/// RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as torchrun leaves them; of Slurm's srun SLURM_PROCID,
/// SLURM_NTASKS and SLURM_LOCALID, where MASTER_ADDR is the first of SLURM_STEP_NODELIST and MASTER_PORT comes of the
/// job's number unless they are set. Nothing where neither did. Throws ConfigError for numbers that make no sense.
/// `variable` is getenv().
std::optional<Rendezvous> rendezvous_in(const std::function<const char*(const char*)>& variable);

/// "node003" of "node[003-010,012]", "a1" of "a1,b[2-3]".
std::string first_host(std::string_view node_list);

}  // namespace commfuse::validate
