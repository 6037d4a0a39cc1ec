// SPDX-License-Identifier: Apache-2.0
#include "model/cost/group.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/check.h"
#include "model/cost/cut_bound.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

Duration stretched(Duration time, double factor) {
  return factor == 1.0 ? time : op_time(factor * to_seconds(time), "a collective");
}

/// Returns `time`. Requires that it is at least `total` x `least`; `least` is in seconds per byte.
Duration at_least(Duration time, Bytes total, double least) {
  require_above_cut(
      time,
      {.seconds = static_cast<double>(total.count) * least, .rounding = 1e-12, .wire = "a collective's port or NICs"});
  return time;
}

/// Distribution of a group's members over nodes.
struct Placement {
  int nodes = 0;
  int least = 0;            // fewest members on a node
  std::vector<int> counts;  // distinct numbers of members on a node
};

/// Groups of equal size and stride over equal nodes.
struct EqualGroups {
  std::int64_t stride = 1;
  std::int64_t ranks = 1;
  std::int64_t gpus_per_node = 1;
};

/// Returns the placement of the members first, first + stride and so on. The pattern over nodes repeats, so even for a
/// billion members only the first two periods and the end are examined.
Placement placement_of(std::int64_t first, const EqualGroups& groups) {
  const std::int64_t stride = groups.stride;
  const std::int64_t ranks = groups.ranks;
  const std::int64_t gpus_per_node = groups.gpus_per_node;
  const std::int64_t period = std::lcm(stride, gpus_per_node);
  const std::int64_t members_per_period = period / stride;
  Placement placement;
  std::int64_t next = 0;
  const auto visit_up_to = [&](std::int64_t last) {
    while (next < last) {
      const std::int64_t gpu = first + next * stride;
      const std::int64_t end = (gpu / gpus_per_node + 1) * gpus_per_node;
      const std::int64_t members = std::min(ranks - next, (end - gpu + stride - 1) / stride);
      const auto count = static_cast<int>(members);
      placement.least = placement.nodes == 0 ? count : std::min(placement.least, count);
      if (std::find(placement.counts.begin(), placement.counts.end(), count) == placement.counts.end()) {
        placement.counts.push_back(count);
      }
      next += members;
      ++placement.nodes;
    }
  };
  visit_up_to(std::min(ranks, 2 * members_per_period));
  const std::int64_t periods = (ranks - next) / members_per_period;
  next += periods * members_per_period;
  placement.nodes += static_cast<int>(periods * (period / std::max(stride, gpus_per_node)));
  visit_up_to(ranks);
  return placement;
}

/// Returns true if a group placed as `first` is faster than one placed as `other`.
bool is_faster(const Placement& first, const Placement& other) {
  return (first.nodes == 1) != (other.nodes == 1)
             ? first.nodes == 1
             : std::pair(first.least, -first.nodes) > std::pair(other.least, -other.nodes);
}

/// Returns true if all groups have the placement of the first group.
bool have_equal_placements(const EqualGroups& groups) {
  const auto [stride, ranks, gpus_per_node] = groups;
  const std::int64_t block = stride * ranks;
  return gpus_per_node % block == 0 || stride % gpus_per_node == 0 ||
         (gpus_per_node % stride == 0 && block % gpus_per_node == 0);
}

/// Returns the placement of the slowest group among the first `gpus` GPUs. Groups that begin a whole number of nodes
/// apart have equal placements.
Placement slowest_placement(const EqualGroups& groups, std::int64_t gpus) {
  Placement slowest = placement_of(0, groups);
  if (have_equal_placements(groups)) {
    return slowest;
  }
  const auto [stride, ranks, gpus_per_node] = groups;
  const std::int64_t block = stride * ranks;
  const std::int64_t blocks = std::min(gpus, std::lcm(block, gpus_per_node)) / block;
  for (std::int64_t begin = 0; begin < blocks * block; begin += block) {
    for (std::int64_t first = begin; first < begin + std::min(stride, gpus_per_node); ++first) {
      Placement placement = placement_of(first, groups);
      if (is_faster(slowest, placement)) {
        slowest = std::move(placement);
      }
    }
  }
  return slowest;
}

/// Returns the parameters inside a node for members `stride` apart; `group` owns them when they are not the
/// machine's.
const CollectiveParameters& inside_a_node(const Machine& machine, std::int64_t stride, int members, Group& group) {
  if (stride == 1 || members == 1) {
    return collective_over(machine, 0, members);
  }
  const auto spacing = static_cast<int>(std::min<std::int64_t>(stride, machine.gpus_per_node));
  // A stride that does not divide the node can put one more member on it than of_whole() accepts.
  const int counted = std::min(members, machine.gpus_per_node / spacing);
  const double part = machine.strided_rates == nullptr || counted < 2
                          ? 1.0
                          : machine.strided_rates->of_whole({.stride = spacing, .ranks = counted});
  if (part == 1.0) {
    return machine.link.collective;
  }
  group.parts.push_back(std::make_shared<const CollectiveParameters>(
      with_rates_up_to(with_rates(machine.link.collective, part), machine.link.capacity)));
  return *group.parts.back();
}

/// Returns the number of GPUs of a node, over all groups, that send to other nodes simultaneously. If most groups are
/// inside a node, a group across nodes is assumed to send alone.
int busy_across(const Machine& machine, const EqualGroups& groups, std::int64_t gpus) {
  const bool mostly_inside = groups.stride == 1 && groups.ranks < machine.gpus_per_node;
  return mostly_inside ? 1 : static_cast<int>(std::min<std::int64_t>(gpus, machine.gpus_per_node));
}

/// Returns the network's parameters for a group while `senders` of each node send; `group` owns the parameters when
/// they are not the machine's.
const CollectiveParameters& across_nodes(const Machine& machine, const SendingGpus& senders, Group& group) {
  const CollectiveParameters& alone = collective_across(machine, senders.of_group);
  const double part = part_beside(machine, senders);
  if (part == 1.0) {
    return alone;
  }
  group.parts.push_back(std::make_shared<const CollectiveParameters>(with_rates(alone, part)));
  return *group.parts.back();
}

/// Sets the least time per byte. A port carries all bytes except the rank's own share. A node with m of n members
/// receives the shares of the n - m other members or, in an all-to-all, what each of these members sends to each of its
/// m members.
void set_least(const Machine& machine, const Placement& placement, Group& group) {
  const double ranks = group.ranks;
  const bool across = placement.nodes > 1;
  const bool inside = !across || std::ranges::any_of(placement.counts, [](int members) { return members > 1; });
  const double nic_rate = across ? machine.network->capacity.value : 0.0;
  const double port = (inside ? machine.link.capacity.value : 0.0) + nic_rate;
  group.least_once = (ranks - 1.0) / ranks / port;
  group.least_to_all = group.least_once;
  for (const int members : across ? placement.counts : std::vector<int>{}) {
    const double from_others = (ranks - members) / ranks / (std::max(1, machine.nics_per_node) * nic_rate);
    group.least_once = std::max(group.least_once, from_others);
    group.least_to_all = std::max(group.least_to_all, members * from_others);
  }
}

}  // namespace

Duration Group::all_gather(Bytes total) const {
  return at_least(stretched(all_gather_time(*wires, ranks, total, nodes), stretch), total, least_once);
}
Duration Group::reduce_scatter(Bytes total) const {
  return at_least(stretched(reduce_scatter_time(*wires, ranks, total, nodes), stretch), total, least_once);
}
Duration Group::all_reduce(Bytes total) const {
  return at_least(stretched(all_reduce_time(*wires, ranks, total, nodes), stretch), total, least_once);
}
Duration Group::all_to_all(Bytes total) const {
  if (nodes == 1) {
    return at_least(stretched(all_to_all_time(*wires, ranks, total), stretch), total, least_to_all);
  }
  Duration slowest{};
  for (const Spread& spread : spreads) {
    slowest = std::max(slowest, all_to_all_time(*wires, ranks, total, spread));
  }
  if (wires->all_to_all != nullptr) {
    // A file's rates were measured over some layout; another layout may load its NICs more.
    const double on_the_wires = static_cast<double>(total.count) * least_to_all;
    slowest = std::max(slowest, op_time(on_the_wires, "an all-to-all across nodes"));
  }
  return at_least(stretched(slowest, stretch), total, least_to_all);
}

Group group_of(const Machine& machine, const GroupLayout& layout) {
  const auto [stride, ranks, chosen] = layout;
  const std::int64_t gpus = chosen.value_or(stride * ranks);
  check(stride >= 1 && ranks >= 1 && gpus >= stride * ranks && gpus % (stride * ranks) == 0 &&
            gpus <= total_gpus(machine),
        "the groups fit the machine");
  const EqualGroups groups{.stride = stride, .ranks = ranks, .gpus_per_node = machine.gpus_per_node};
  const Placement placement = slowest_placement(groups, gpus);
  Group group{.ranks = static_cast<int>(ranks), .nodes = placement.nodes};
  set_least(machine, placement, group);
  if (placement.nodes == 1) {
    group.wires = &inside_a_node(machine, stride, group.ranks, group);
    return group;
  }
  const int busy = busy_across(machine, groups, gpus);
  for (const int members : placement.counts) {
    group.spreads.push_back(
        {.gpus_of_a_node = members,
         .inside = members == 1 ? nullptr : &inside_a_node(machine, stride, members, group),
         .rate_out = rate_across(machine, {.of_group = members, .of_node = std::max(members, busy)})});
  }
  group.wires =
      &across_nodes(machine, {.of_group = placement.least, .of_node = std::max(placement.least, busy)}, group);
  return group;
}

Group group_on_axis(const Mesh& mesh, int axis, const Machine& machine) {
  return group_of(
      machine,
      {.stride = mesh.stride(axis), .ranks = mesh.axes[static_cast<std::size_t>(axis)].extent, .gpus = mesh.ranks()});
}

}  // namespace commfuse
