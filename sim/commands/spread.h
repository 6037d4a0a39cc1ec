// SPDX-License-Identifier: Apache-2.0
// run --gpus: distributes GPUs, as ranks, over as many nodes as they need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/config/settings.h"

namespace commfuse::sim {

/// Returns the number of GPUs that --gpus states. Throws ConfigError, with `example` as the remedy, unless `text` is a
/// whole number from 1 to 2^20.
std::int64_t gpus_in(const std::string& text, std::string_view example);

/// Returns the cluster of the catalogue whose nodes are `hardware`, preferably a DGX. Returns `hardware` itself if it
/// is already a cluster, or if no cluster with such nodes is known.
std::string cluster_of_nodes(const std::string& hardware);

/// Sets ranks, replicas, machine and, by default, the batch, and returns a line that states the new values. In a
/// training step, the GPUs become data-parallel replicas of the chosen tensor, pipeline, context and Ulysses ranks; in
/// other scopes, they become tensor ranks. Throws ConfigError, with a remedy, if the number of GPUs does not match the
/// chosen ranks or replicas, or if no cluster of the machine is known.
std::string spread_over(const std::string& gpus, Settings& settings);

}  // namespace commfuse::sim
