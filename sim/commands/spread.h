// SPDX-License-Identifier: Apache-2.0
// run --gpus: so many GPUs, as ranks on as many nodes as they need.
#pragma once

#include <string>

#include "model/config/settings.h"

namespace commfuse::sim {

/// The cluster of the catalogue whose nodes are of this hardware, a DGX rather than another; what is a cluster already,
/// and hardware of which none is known, as it is.
std::string cluster_of_nodes(const std::string& hardware);

/// Sets ranks, replicas, machine and, where nobody chose one, the batch, and returns a line that says what it set: of a
/// training step data-parallel replicas of the tensor, pipeline, context and Ulysses ranks that were chosen; of other
/// scopes tensor ranks. Throws ConfigError, with a remedy, where GPUs and ranks do not go together, or no cluster of
/// the machine is known.
std::string spread_over(const std::string& gpus, Settings& settings);

}  // namespace commfuse::sim
