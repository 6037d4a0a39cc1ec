// SPDX-License-Identifier: Apache-2.0
// What a group of ranks that stand some GPUs apart sees of the wires when all groups alike are busy at once.
#pragma once

#include <cstdint>

#include "model/hardware/machine.h"
#include "model/units.h"

namespace commfuse {

struct Group {
  CollectiveParameters parameters;
  int ranks = 1;
  int nodes = 1;
  double stretch = 1.0;  ///< Times its price: the largest of its members' times.

  [[nodiscard]] Duration all_gather(Bytes total) const;
  [[nodiscard]] Duration reduce_scatter(Bytes total) const;
  [[nodiscard]] Duration all_reduce(Bytes total) const;
  [[nodiscard]] Duration all_to_all(Bytes total) const;
};

/// How much slower than the median the slowest of so many GPUs is, in the mean, where the speeds of GPUs are lognormal:
/// exp(sigma x q), with q the standard normal quantile at (n - 0.375) / (n + 0.25) (Blom 1958). All wait for it in
/// every step. 1 for one GPU or sigma 0. Likewise of the members of a collective.
double slowest_of(std::int64_t gpus, double sigma);

/// That factor in the machines of which `probability` are no slower: all n are no slower than f with probability
/// F(f)^n, so it is the quantile of one GPU's factor at probability^(1/n). Requires gpus >= 1 and 0 < probability < 1.
double slowest_of(std::int64_t gpus, double sigma, double probability);

/// GPUs 0, stride, 2 x stride and so on. Inside a node the node's collective; across nodes the network's over a group
/// with as many members on a node (collective_across). Requires ranks x stride GPUs.
Group group_of(const Machine& machine, std::int64_t stride, std::int64_t ranks);

/// One exchange with the GPU so many further on.
Duration send_time(const Machine& machine, std::int64_t stride, Bytes bytes);

}  // namespace commfuse
