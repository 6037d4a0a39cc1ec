// SPDX-License-Identifier: Apache-2.0
// Changes that turn a machine of the catalogue into the operator's machine, as input to `expect` and to verdicts. Every
// parameter that is not named stays unchanged.
#pragma once

#include "model/hardware/machine.h"

namespace commfuse {

/// Returns the machine with the rates of exchanges and collectives inside a node multiplied by `factor`. If factor < 1,
/// the rates of collectives across nodes are limited to the reduced rate inside a node. Requires factor > 0.
Machine with_link_rates(Machine machine, double factor);

/// Returns the machine with the rates of exchanges and collectives between nodes multiplied by `factor`. Requires
/// factor > 0, and `machine` to have a network.
Machine with_network_rates(Machine machine, double factor);

/// Returns the machine with only `rails` of a node's NICs, which all GPUs of the node share (share_of_nics). Requires 1
/// <= rails <= NICs of a node.
Machine with_rails(Machine machine, int rails);

/// Returns the machine with every latency of exchanges and collectives, inside a node and between nodes, multiplied by
/// `factor`. The all-reduce kernels of serving frameworks are included.
Machine with_latencies(Machine machine, double factor);

/// Returns true if all-reduces inside a node may be summed in the switch.
bool has_nvls(const Machine& machine);
/// Returns the machine with NCCL_NVLS_ENABLE=0: where NCCL would sum in the switch, it uses the ring with protocol
/// Simple instead. Requires has_nvls(machine).
Machine without_nvls(Machine machine);

/// Returns the machine with NCCL_MAX_CTAS=ctas. NCCL's own estimate makes the rate of a ring proportional to its
/// channels (NVIDIA/nccl 2.28.9, src/graph/tuning.cc), so the rates of rings, trees and all-to-alls fall in proportion
/// to the CTAs; sums in the switch do not, since they reach 98% of their rate with 4 CTAs. The all-reduce kernels of
/// serving frameworks have CTAs of their own and stay unchanged. A limit above the machine's number of CTAs changes
/// nothing. Requires ctas >= 1.
Machine with_ctas(Machine machine, int ctas);

/// Returns the machine with SMs at a lower clock, a share of the usual clock: latencies are longer, and data that SMs
/// copy and unpack themselves (LL and LL128 of rings and trees, a rank's own share) are slower; the wires are
/// unchanged. Requires 0 < share <= 1.
Machine with_clock(Machine machine, double share);

}  // namespace commfuse
