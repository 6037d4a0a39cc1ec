// SPDX-License-Identifier: Apache-2.0
// The same machine with faster or slower wires: what a link would bring that nobody has yet.
#pragma once

#include "model/hardware/machine.h"

namespace commfuse {

/// How many times as fast; above 0.
struct LinkRates {
  double node = 1.0;     ///< Links inside a node, of every pair and group.
  double network = 1.0;  ///< Those between nodes.
};

/// The machine with such links: nominal, peer, aggregate and collective rates, NCCL's own too, and the wires of the
/// topology. Latencies, CTAs and what a rank copies for itself stay. A rate that is another now is a prior, with the
/// relative error it had. A collective across nodes passes the links inside too: it is no more times as fast as those
/// let it, which carry at least what it had.
Machine with_link_rates(const Machine& given, LinkRates rates);

}  // namespace commfuse
