// SPDX-License-Identifier: Apache-2.0
// Derives a machine with faster or slower wires, to find the effect of hypothetical links.
#pragma once

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

}  // namespace commfuse
