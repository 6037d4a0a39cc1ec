// SPDX-License-Identifier: Apache-2.0
#include "model/config/machine_wires.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "model/config/inherited_rates.h"
#include "model/formats/topology_file.h"
#include "model/hardware/described.h"
#include "model/text/counted.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr Range<std::int64_t> wired_node_size_range{1, 64};  // a mesh grows with the square of its GPUs
constexpr double rounding = 1.0 + 1e-9;

/// Reads `kind`; a message for an unknown kind lists all kinds.
NodeKind read_kind(YamlMap map) {
  const std::string word = map.text("kind");
  const std::optional<NodeKind> kind = node_kind_named(word);
  if (!kind && !word.empty()) {
    map.mistake("kind",
                fmt::format("unknown topology {}; choose nvswitch, full_mesh, pcie_tree or ring", in_quotes(word)));
  }
  return kind.value_or(NodeKind::nvswitch);
}

/// Reads the rate of a wire; scales a rate that another file states to the link of this file.
Parameter<BytesPerSecond> read_rate(YamlMap map, std::string_view key, const RateFactors& factors) {
  Parameter<BytesPerSecond> rate = map.bandwidth_parameter(key);
  scale_inherited(map, key, rate, factors);
  return rate;
}

std::optional<BytesPerSecond> optional_rate(YamlMap map, std::string_view key, const RateFactors& factors) {
  return map.optional_value(key) ? std::optional(read_rate(map, key, factors).value) : std::nullopt;
}

void read_tree(YamlMap map, TopologyPlan& plan, const RateFactors& factors) {
  plan.gpus_per_bridge = static_cast<int>(map.count("gpus_per_bridge", wired_node_size_range));
  plan.bridges_per_root = static_cast<int>(map.count("bridges_per_root", wired_node_size_range));
  plan.bridge_rate = read_rate(map, "bridge_rate", factors);
  if (map.optional_value("root_rate")) {
    plan.root_rate = read_rate(map, "root_rate", factors);
  }
}

/// Returns the number of wires that share the aggregate rate of a GPU.
int wires_per_gpu(NodeKind kind, int gpus) {
  switch (kind) {
    case NodeKind::full_mesh: return std::max(gpus - 1, 1);
    case NodeKind::ring: return gpus > 2 ? 2 : 1;
    case NodeKind::nvswitch:
    case NodeKind::pcie_tree: return 1;
  }
  return 1;
}

/// Rate of wires, and the name of the wires in messages.
struct Capacity {
  BytesPerSecond limit;
  std::string wires;
};

/// Returns "link.peer.rate (361 GB/s)", with the file that states the rate if it is inherited.
std::string named_rate(YamlMap map, std::string_view key, BytesPerSecond rate) {
  const std::string file = map.inherited_from(key);
  return fmt::format("{} ({}{})", map.full_name(key), bandwidth_in_words(rate),
                     file.empty() ? "" : ", inherited from " + with_escapes(file));
}

/// Reports a mistake if a rate exceeds the rate of the wires. A rate that the file omits is an estimate, which
/// load_machine limits to the wires.
void check_rate(YamlMap map, std::string_view key, BytesPerSecond rate, const Capacity& capacity) {
  if (map.has(key) && rate.value > rounding * capacity.limit.value) {
    map.mistake(key, fmt::format("{} exceeds the wires: {} {}; {}, or correct the rate of the wires",
                                 named_rate(map, key, rate), capacity.wires, bandwidth_in_words(capacity.limit),
                                 map.level(key) == 0 ? "lower it" : "state a lower rate in this file"));
  }
}

/// Checks every rate of a described struct and of the maps inside it.
template <class S>
void check_rates(YamlMap map, const S& described, const Capacity& capacity) {
  each_entry<S>([&](const auto& entry) {
    using Member = typename std::remove_cvref_t<decltype(entry)>::Member;
    const Member& member = described.*entry.member;
    if constexpr (std::is_same_v<Member, Parameter<BytesPerSecond>>) {
      check_rate(map, entry.key, member.value, capacity);
    } else if constexpr (std::is_same_v<Member, std::optional<Parameter<BytesPerSecond>>>) {
      if (member) {
        check_rate(map, entry.key, member->value, capacity);
      }
    } else if constexpr (is_optional<Member> && is_map_of_parameters<Member>) {
      if (member) {
        check_rates(map.map(entry.key), *member, capacity);
      }
    } else if constexpr (is_map_of_parameters<Member>) {
      check_rates(map.map(entry.key), member, capacity);
    }
  });
}

/// The most that a rank can send in a collective, and in an all-to-all by grouped sends.
struct CollectiveCapacity {
  Capacity any;
  Capacity all_to_all;
};

/// Checks that no collective, with any kernel, is faster than the wires that it uses.
void check_collective(YamlMap map, const CollectiveParameters& collective, const CollectiveCapacity& capacities) {
  const Capacity& capacity = capacities.any;
  check_rate(map, "rate", collective.rate.value, capacity);
  if (std::optional<YamlMap> nccl = map.optional_map("nccl"); nccl && collective.nccl != nullptr) {
    const NcclKernels& kernels = *collective.nccl;
    const auto check_kernel = [&](std::string_view key, BytesPerSecond rate) {
      if (std::optional<YamlMap> kernel = nccl->optional_map(key)) {
        check_rate(*kernel, "rate", rate, capacity);
      }
    };
    check_kernel("ll", kernels.ll.rate.value);
    check_kernel("ll128", kernels.ll128 ? kernels.ll128->rate.value : BytesPerSecond{});
    check_kernel("nvls", kernels.nvls ? kernels.nvls->rate.value : BytesPerSecond{});
  }
  if (std::optional<YamlMap> direct = map.optional_map("all_to_all"); direct && collective.all_to_all != nullptr) {
    check_rate(direct->map("small"), "rate", collective.all_to_all->small.rate.value, capacities.all_to_all);
    check_rate(direct->map("large"), "rate", collective.all_to_all->large.rate.value, capacities.all_to_all);
  }
  each_algorithm([&](const auto& entry) {
    const auto& algorithm = collective.*entry.member;
    if (const std::optional<YamlMap> given = map.optional_map(entry.key); given && algorithm != nullptr) {
      check_rates(*given, *algorithm, capacity);
    }
  });
}

/// Returns the capacity of the NICs for a collective over this many GPUs of every node.
CollectiveCapacity capacity_of_nics(const Machine& machine, int gpus) {
  const int nics = std::min(machine.nics_per_node, gpus);
  const std::string users = gpus >= machine.gpus_per_node ? "a node's GPUs use"
                            : gpus == 1                   ? "one GPU of a node uses"
                                                          : fmt::format("{} GPUs of a node use", gpus);
  const BytesPerSecond together = static_cast<double>(nics) * machine.network->capacity;
  return {.any = {together, nics == 1 ? fmt::format("the NIC that {} carries", users)
                                      : fmt::format("the {} NICs that {} carry", nics, users)},
          .all_to_all = {all_to_all_limit(machine, gpus),
                         fmt::format("in an all-to-all over {} nodes, {} of each node {} {}", machine.nodes,
                                     counted(nics, "NIC"), nics == 1 ? "lets" : "let",
                                     gpus == 1 ? "one GPU send" : fmt::format("each of {} GPUs send", gpus))}};
}

/// Checks that no exchange is faster than the port through which it leaves.
void check_peer(YamlMap map, const PeerParameters& peer, const Capacity& capacity) {
  check_rate(map, "rate", peer.rate.value, capacity);
  check_rate(map, "aggregate_rate", peer.aggregate_rate.value, capacity);
  if (peer.small) {
    check_rate(map.map("small"), "rate", peer.small->rate.value, capacity);
  }
}

/// Reads the wires from the file that the map names. Returns nullopt when a mistake prevents this.
std::optional<NodeWires> read_wires(const YamlFile& file, YamlMap map, int gpus_per_node, const RateFactors& factors) {
  namespace fs = std::filesystem;
  if (map.optional_value("kind")) {
    map.mistake("kind", "a topology has either a file or a kind; remove one of them");
  }
  const std::string choice = map.text("file");
  const WireRates rates{.nvlink = optional_rate(map, "nvlink_rate", factors),
                        .pcie = optional_rate(map, "pcie_rate", factors),
                        .root = optional_rate(map, "root_rate", factors)};
  const fs::path folder = fs::absolute(file.path()).parent_path();
  if (!choice.empty() && leaves(folder, folder / choice)) {
    map.mistake("file", fmt::format("{} is not below the folder of this file; put it there", in_quotes(choice)));
    return std::nullopt;
  }
  if (file.has_mistakes()) {  // also without a name, which text() notes
    return std::nullopt;
  }
  NodeWires wires = read_topology_file((fs::path(file.path()).parent_path() / choice).string(), rates);
  wires.file = choice;
  if (wires.gpus != gpus_per_node) {
    map.mistake("file", fmt::format("{} has {} GPUs, but a node has {}; give the file of such a node, or correct "
                                    "gpus_per_node",
                                    choice, wires.gpus, gpus_per_node));
  }
  return wires;
}

/// Returns true if the wires of a node distinguish its pairs of GPUs.
bool has_pairs(const Machine& machine, const TopologyPlan& plan) {
  return (plan.wires || plan.kind != NodeKind::nvswitch) && machine.gpus_per_node > 1;
}

/// Notes that a rate of the hardware exceeds the wires that this file gives its nodes.
void refuse_topology(YamlMap root, std::string_view key, BytesPerSecond rate, std::string_view limit) {
  root.map("topology")
      .mistake("kind", fmt::format("{0} is {1}, but {2}; correct the topology, or lower {0} of the hardware", key,
                                   bandwidth_in_words(rate), limit));
}

}  // namespace

TopologyPlan read_node_plan(const YamlFile& file, YamlMap root, const Machine& machine, const RateFactors& factors) {
  TopologyPlan plan;
  plan.gpus_per_node = machine.gpus_per_node;
  plan.gpu_rate = machine.link.nominal_rate.value;
  std::optional<YamlMap> map = root.optional_map("topology");
  if (!map) {
    return plan;
  }
  plan.hop_latency = map->duration_parameter("hop_latency").value;
  if (map->optional_value("file")) {
    plan.wires = read_wires(file, *map, machine.gpus_per_node, factors);
    return plan;
  }
  plan.kind = read_kind(*map);
  if (plan.kind == NodeKind::pcie_tree) {
    read_tree(*map, plan, factors);
  }
  if (plan.kind != NodeKind::nvswitch && plan.gpus_per_node > wired_node_size_range.most) {
    root.mistake("gpus_per_node", fmt::format("{} GPUs are too many for a {}; choose 1 to {}", plan.gpus_per_node,
                                              name_of(plan.kind), wired_node_size_range.most));
  }
  plan.gpu_rate.value /= wires_per_gpu(plan.kind, plan.gpus_per_node);
  return plan;
}

void check_node_rates(YamlMap root, const Machine& machine) {
  if (machine.gpus_per_node > 1) {
    const Capacity port{machine.link.capacity, "a GPU's nominal_rate is"};
    check_peer(root.map("link").map("peer"), machine.link.peer, port);
    check_collective(root.map("link").map("collective"), machine.link.collective, {port, port});
  }
}

void check_node_wires(YamlMap root, const Machine& machine, const TopologyPlan& plan) {
  if (!has_pairs(machine, plan)) {
    return;
  }
  const BytesPerSecond limit = GroupRates(*machine.topology, machine.gpus_per_node).alone(machine.gpus_per_node);
  const BytesPerSecond rate = machine.link.collective.rate.value;
  if (root.has("link")) {
    check_rate(root.map("link").map("collective"), "rate", rate, {limit, "the topology gives a GPU"});
  } else if (rate.value > rounding * limit.value) {
    refuse_topology(root, "link.collective.rate", rate,
                    fmt::format("this topology gives a GPU only {}", bandwidth_in_words(limit)));
  }
}

BytesPerSecond all_to_all_limit(const Machine& machine, int gpus) {
  const double ranks = static_cast<double>(gpus) * machine.nodes;
  const double nics_per_gpu = static_cast<double>(std::min(machine.nics_per_node, gpus)) / gpus;
  return (ranks - 1.0) / (ranks - gpus) * nics_per_gpu * machine.network->capacity;
}

void check_network_rates(YamlMap root, const Machine& machine, const std::map<int, CollectiveParameters>& groups) {
  YamlMap map = root.map("network");
  check_peer(map.map("peer"), machine.network->peer, {machine.network->capacity, "a NIC's nominal_rate is"});
  check_collective(map.map("collective"), machine.network->collective,
                   capacity_of_nics(machine, machine.gpus_per_node));
  for (const auto& [gpus, collective] : groups) {
    check_collective(map.map("groups").map(std::to_string(gpus)), collective, capacity_of_nics(machine, gpus));
  }
}

void check_wire_rate(YamlMap root, const Machine& machine, const TopologyPlan& plan) {
  YamlMap peer = root.map("link").map("peer");
  const BytesPerSecond rate = machine.link.peer.rate.value;
  const bool has_wires = !plan.wires && (plan.kind == NodeKind::full_mesh || plan.kind == NodeKind::ring);
  if (has_wires && rate.value > rounding * plan.gpu_rate.value) {
    const int peers = wires_per_gpu(plan.kind, plan.gpus_per_node);
    peer.mistake("rate",
                 fmt::format("{} exceeds one wire of the {}, {} (nominal_rate over {}); give the rate to a single peer",
                             named_rate(peer, "rate", rate), plan.kind == NodeKind::ring ? "ring" : "mesh",
                             bandwidth_in_words(plan.gpu_rate), counted(peers, "peer")));
  }
}

int nics_of(const NodeWires& wires) {
  const auto last = std::max_element(wires.nic_of_gpu.begin(), wires.nic_of_gpu.end());
  return last == wires.nic_of_gpu.end() ? 0 : *last + 1;
}

void wire_up(YamlMap root, Machine& machine, const TopologyPlan& plan) {
  const Topology topology = build_topology(plan);
  if (const std::optional<int> lost = unreachable_gpu(topology)) {
    root.mistake("topology", fmt::format("GPU {} cannot be reached from GPU 0{}; give root_rate, or {}", *lost,
                                         plan.wires ? " over the wires of " + plan.wires->file : "",
                                         plan.wires ? "the file of a node whose GPUs are connected"
                                                    : "put all bridges under one root"));
    return;
  }
  if (const BytesPerSecond peer = machine.link.peer.rate.value; has_pairs(machine, plan)) {
    const BytesPerSecond limit = fastest_pair(topology, machine.gpus_per_node);
    const bool is_faster = peer.value > rounding * limit.value;
    if (is_faster && !plan.wires) {
      refuse_topology(root, "link.peer.rate", peer,
                      fmt::format("no pair of this topology has more than {}", bandwidth_in_words(limit)));
      return;
    }
    if (is_faster) {
      root.map("topology")
          .mistake(
              "file",
              fmt::format("link.peer.rate is {}, but no pair of {} has more than {}; give the file of this machine, "
                          "or give the rate to a single peer",
                          bandwidth_in_words(peer), plan.wires->file, bandwidth_in_words(limit)));
      return;
    }
  }
  connect(machine, std::make_shared<const TopologyPlan>(plan));
}

}  // namespace commfuse
