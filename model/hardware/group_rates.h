// SPDX-License-Identifier: Apache-2.0
// What part of a node's wires a group of its GPUs has in a collective.
#pragma once

#include <cstdint>
#include <vector>

#include "model/hardware/topology.h"
#include "model/units.h"

namespace commfuse {

/// Of one node. A collective sends by the better of two ways, and the wire with the most on it for its rate sets the
/// pace: round a ring, half of the bytes each way; or from every GPU to every other as much. So a switch gives every
/// group the same, a mesh a group of n the n - 1 wires that its GPUs have to each other, a ring a group that does not
/// close it one of two ways round, and a PCIe tree what the slowest wire between neighbours has, shared by those that
/// pass it.
class GroupRates {
 public:
  /// Requires GPUs that reach each other.
  GroupRates(const Topology& topology, int gpus_per_node);

  /// Bytes a second that each of GPUs 0 to `ranks` - 1 sends while no other group does. Requires 2 <= ranks <=
  /// gpus_per_node.
  [[nodiscard]] BytesPerSecond alone(int ranks) const;

  /// The same of groups whose GPUs stand `stride` apart, as many of them at once as the node has whole ones. Requires
  /// stride >= 1, ranks >= 2 and stride x ranks <= gpus_per_node.
  [[nodiscard]] BytesPerSecond together(int stride, int ranks) const;

 private:
  using Groups = std::vector<std::vector<int>>;
  [[nodiscard]] BytesPerSecond best_of(const Groups& groups) const;
  [[nodiscard]] double round_a_ring(const Groups& groups) const;
  [[nodiscard]] double direct(const Groups& groups) const;
  void put(std::vector<std::int64_t>& load, int from, int to) const;
  [[nodiscard]] double least_share(const std::vector<std::int64_t>& load) const;

  int gpus_per_node_;
  std::vector<double> rate_of_link_;                // bytes a second, by directed link
  std::vector<std::vector<std::int32_t>> crossed_;  // directed links, by from x gpus_per_node + to
};

/// What part of the whole node's collectives groups get whose GPUs do not stand side by side.
class StridedRates {
 public:
  /// By GroupRates.
  StridedRates(const GroupRates& rates, int gpus_per_node);
  /// Requires stride >= 1, ranks >= 2 and stride x ranks <= gpus_per_node.
  [[nodiscard]] double of_whole(int stride, int ranks) const;
  /// Every group gets all that the whole node does.
  [[nodiscard]] bool alike() const;

 private:
  int gpus_per_node_;
  std::vector<double> of_whole_;  // by (stride - 1) x gpus_per_node + ranks - 1
};

/// One rate as a part of another; 1 where they differ by rounding alone.
double part_of(BytesPerSecond rate, BytesPerSecond whole);

}  // namespace commfuse
