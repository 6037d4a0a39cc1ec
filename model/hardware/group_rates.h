// SPDX-License-Identifier: Apache-2.0
// Share of a node's wires that a group of its GPUs gets in a collective.
#pragma once

#include <cstdint>
#include <vector>

#include "model/hardware/topology.h"
#include "model/units.h"

namespace commfuse {

/// Groups in one node whose GPUs are `stride` apart.
struct StridedGroups {
  int stride = 1;
  int ranks = 1;  ///< GPUs of one group.
};

/// Rates of groups in one node. A collective uses the better of two patterns: a ring with half of the bytes each way,
/// or equal data from every GPU to every other GPU. The wire with the most load relative to its rate sets the pace. So
/// a switch gives every group the same rate; a mesh gives a group of n its n - 1 wires; a ring gives a group that does
/// not span the ring only one of its two directions; and a PCIe tree gives the rate of the slowest wire between
/// neighbours, divided by the transfers that share it.
class GroupRates {
 public:
  /// Requires the GPUs of `topology` to reach each other.
  GroupRates(const Topology& topology, int gpus_per_node);

  /// Returns the bytes per second that each of GPUs 0 to `ranks` - 1 sends while no other group does. Requires 2 <=
  /// ranks <= gpus_per_node.
  [[nodiscard]] BytesPerSecond alone(int ranks) const;

  /// Returns the rate of each group while as many whole groups as fit into the node run simultaneously. Requires stride
  /// >= 1, ranks >= 2 and stride x ranks <= gpus_per_node.
  [[nodiscard]] BytesPerSecond together(const StridedGroups& shape) const;

 private:
  using Groups = std::vector<std::vector<int>>;
  [[nodiscard]] BytesPerSecond best_of(const Groups& groups) const;
  [[nodiscard]] double ring_rate(const Groups& groups) const;
  [[nodiscard]] double direct_rate(const Groups& groups) const;
  void add_load(std::vector<std::int64_t>& load, int from, int to) const;
  [[nodiscard]] double least_share(const std::vector<std::int64_t>& load) const;

  int gpus_per_node_;
  std::vector<double> rate_of_link_;                // bytes per second, by directed link
  std::vector<std::vector<std::int32_t>> crossed_;  // directed links, by from x gpus_per_node + to
};

/// Rates of strided groups that run simultaneously, relative to the collectives of the whole node.
class StridedRates {
 public:
  /// Computes the relative rates from `rates`.
  StridedRates(const GroupRates& rates, int gpus_per_node);
  /// Returns the relative rate. Requires stride >= 1, ranks >= 2 and stride x ranks <= gpus_per_node.
  [[nodiscard]] double of_whole(const StridedGroups& shape) const;
  /// Returns true if every group has the rate of the whole node.
  [[nodiscard]] bool alike() const;

 private:
  int gpus_per_node_;
  std::vector<double> of_whole_;  // by (stride - 1) x gpus_per_node + ranks - 1
};

/// Returns one rate relative to another; 1 if they differ only by rounding.
double part_of(BytesPerSecond part, BytesPerSecond whole);

}  // namespace commfuse
