// SPDX-License-Identifier: Apache-2.0
// The machine that an operator has in place of the one that he bought: what `expect` is asked for, and what a verdict
// holds measurements against. Everything that is not named stays as it is.
#pragma once

#include "model/hardware/machine.h"

namespace commfuse {

/// Every rate of the links inside a node so many times as high; collectives across nodes get no more than that.
/// Requires times > 0.
Machine with_link_rates(Machine machine, double times);

/// Every rate between nodes so many times as high. Requires times > 0 and a network.
Machine with_network_rates(Machine machine, double times);

/// With so many of a node's NICs: all GPUs of the node share them (share_of_nics). Requires 1 <= rails <= the NICs.
Machine with_rails(Machine machine, int rails);

/// Every latency of exchanges and collectives, inside a node and between nodes, so many times as long.
Machine with_latencies(Machine machine, double times);

/// Whether all-reduces of a node may be summed in the switch.
bool has_nvls(const Machine& machine);
/// With NCCL_NVLS_ENABLE=0: where NCCL would sum in the switch, the ring by Simple takes over. Requires has_nvls.
Machine without_nvls(Machine machine);

/// With NCCL_MAX_CTAS: NCCL's own estimate has the rate of a ring proportional to its channels (NVIDIA/nccl 2.28.9,
/// src/graph/tuning.cc), so rings and trees lose the share of the CTAs that they lose; sums in the switch do not, which
/// reach 98% of their rate with 4 CTAs. More CTAs than the machine's change nothing. Requires ctas >= 1.
Machine with_ctas(Machine machine, int ctas);

/// At a lower clock of the SMs, a share of the usual one: latencies are longer and what SMs copy and unpack themselves
/// (LL, LL128, the own share) is slower; the wires stay. Requires 0 < share <= 1.
Machine with_clock(Machine machine, double share);

}  // namespace commfuse
