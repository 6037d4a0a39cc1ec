// SPDX-License-Identifier: Apache-2.0
// Derives a machine with faster or slower wires, to find the effect of hypothetical links, or with other kernels on
// them.
#pragma once

#include <optional>

#include "model/hardware/machine.h"

namespace commfuse {

/// Factors on rates; above 0.
struct LinkRates {
  double node = 1.0;     ///< For links inside a node, of every pair and group.
  double network = 1.0;  ///< For links between nodes.
};

/// Returns the machine with these links. Nominal, peer, aggregate and collective rates change, NCCL's own estimates
/// too, and the wires of the topology. Latencies, CTAs and own_copy_rate stay. A changed rate is a prior, with its
/// former relative error. A collective across nodes also uses the links inside, so its speed-up is limited to what
/// those allow; they carry at least its former rate.
Machine with_link_rates(const Machine& given, LinkRates rates);

/// Returns the machine whose all-reduces inside a node may take this framework's kernels, without those of others, so
/// that their doubts cost no time; nullopt if the file has none of it. For NCCL no framework's are left.
std::optional<Machine> with_all_reduce_kernel(Machine machine, AllReduceKernel kernel);

}  // namespace commfuse
