// SPDX-License-Identifier: Apache-2.0
// Derives machines with faster or slower wires, to find the effect of hypothetical links, or with other all-reduce
// kernels.
#pragma once

#include <optional>

#include "model/hardware/machine.h"

namespace commfuse {

/// Links are at most this many times as fast or as slow as those whose rates are known.
inline constexpr double max_rate_factor = 1000.0;

/// Returns true if rates may be multiplied by this factor.
constexpr bool is_rate_factor(double factor) { return factor >= 1.0 / max_rate_factor && factor <= max_rate_factor; }

/// Factors on rates; above 0.
struct LinkRates {
  double node = 1.0;     ///< Factor for links inside a node, for every pair and group.
  double network = 1.0;  ///< Factor for links between nodes.
};

/// Returns the machine with these links. Scales the nominal, peer, aggregate and collective rates, NCCL's own
/// estimates, and the wires of the topology; latencies, CTAs and rates of own shares stay the same. A changed rate is a
/// prior with the relative error of the original rate. The links inside nodes limit the speed-up of a collective across
/// nodes, because its data cross them too; they are assumed to carry at least the collective's original rate.
Machine with_link_rates(const Machine& given, LinkRates rates);

/// Returns the machine whose all-reduces inside a node may use the kernels of this framework. Removes the kernels of
/// other frameworks, so that no time is spent on their uncertainties; for NCCL, removes the kernels of all frameworks.
/// Returns nullopt if the machine's file lacks the kernels of the framework.
std::optional<Machine> with_all_reduce_kernel(Machine machine, AllReduceKernel kernel);

}  // namespace commfuse
