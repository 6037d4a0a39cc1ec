// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/topology.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

/// Builds the topology node by node; all GPUs are added first.
class Builder {
 public:
  explicit Builder(const TopologyPlan& plan) : plan_(plan) {
    topology_.gpus = plan.nodes * plan.gpus_per_node;
    for (int gpu = 0; gpu < topology_.gpus; ++gpu) {
      add(VertexKind::gpu, gpu / plan.gpus_per_node);
    }
  }

  Topology build() {
    if (plan_.nodes > 1 && plan_.nics_per_node > 0) {
      add_switches();
    }
    for (int node = 0; node < plan_.nodes; ++node) {
      plan_.wires ? add_wires(node, *plan_.wires) : add_kind(node);
      if (!switches_.empty()) {
        add_nics(node);
      }
    }
    return std::move(topology_);
  }

 private:
  int add(VertexKind kind, int node) {
    topology_.vertices.push_back({kind, node});
    return static_cast<int>(topology_.vertices.size()) - 1;
  }
  void join(int a, int b, BytesPerSecond rate, BytesPerSecond capacity) {
    topology_.edges.push_back({a, b, rate, plan_.hop_latency, capacity});
  }
  void join(int a, int b, BytesPerSecond rate) { join(a, b, rate, rate); }
  [[nodiscard]] int gpu(int node, int index) const { return node * plan_.gpus_per_node + index; }

  void add_kind(int node) {
    switch (plan_.kind) {
      case NodeKind::nvswitch: add_crossbar(node); break;
      case NodeKind::full_mesh: add_mesh(node); break;
      case NodeKind::pcie_tree: add_tree(node); break;
      case NodeKind::ring: add_ring(node); break;
    }
  }

  void add_wires(int node, const NodeWires& wires) {
    const auto first = static_cast<int>(topology_.vertices.size());
    for (const VertexKind kind : wires.others) {
      add(kind, node);
    }
    const auto vertex_of = [&](int vertex) {
      return vertex < wires.gpus ? gpu(node, vertex) : first + vertex - wires.gpus;
    };
    for (const Edge& edge : wires.edges) {
      join(vertex_of(edge.a), vertex_of(edge.b), edge.rate);
    }
  }

  void add_crossbar(int node) {
    const int crossbar = add(VertexKind::crossbar, node);
    for (int i = 0; i < plan_.gpus_per_node; ++i) {
      join(gpu(node, i), crossbar, plan_.gpu_rate);
    }
  }

  void add_mesh(int node) {
    for (int i = 0; i < plan_.gpus_per_node; ++i) {
      for (int j = i + 1; j < plan_.gpus_per_node; ++j) {
        join(gpu(node, i), gpu(node, j), plan_.gpu_rate);
      }
    }
  }

  /// A ring of two GPUs has one wire.
  void add_ring(int node) {
    const int wires = plan_.gpus_per_node > 2 ? plan_.gpus_per_node : plan_.gpus_per_node - 1;
    for (int i = 0; i < wires; ++i) {
      join(gpu(node, i), gpu(node, (i + 1) % plan_.gpus_per_node), plan_.gpu_rate);
    }
  }

  void add_tree(int node) {
    std::vector<int> roots;
    const int gpus_per_root = plan_.gpus_per_bridge * plan_.bridges_per_root;
    int bridge = -1;
    for (int i = 0; i < plan_.gpus_per_node; ++i) {
      if (i % gpus_per_root == 0) {
        add_root(node, roots);
      }
      if (i % plan_.gpus_per_bridge == 0) {
        bridge = add(VertexKind::bridge, node);
        join(bridge, roots.back(), plan_.bridge_rate.value, bridge_capacity());
      }
      join(gpu(node, i), bridge, plan_.gpu_rate);
    }
  }

  void add_root(int node, std::vector<int>& roots) {
    const int root = add(VertexKind::root, node);
    if (plan_.root_rate) {
      for (const int other : roots) {
        join(other, root, plan_.root_rate->value, root_capacity());
      }
    }
    roots.push_back(root);
  }

  /// Returns the capacity of a bridge's wire: the capacity of a GPU's wire, unless the file states a higher rate.
  [[nodiscard]] BytesPerSecond bridge_capacity() const {
    return {std::max(plan_.gpu_rate.value, plan_.bridge_rate.value.value)};
  }
  /// Returns the capacity between sockets: that of all bridges of one socket, unless the file states a higher rate.
  [[nodiscard]] BytesPerSecond root_capacity() const {
    return {std::max(plan_.bridges_per_root * bridge_capacity().value, plan_.root_rate->value.value)};
  }

  void join_network(int a, int b, BytesPerSecond rate) {
    topology_.edges.push_back({a, b, rate, plan_.nic_latency, rate});
  }

  void add_switches() {
    if (plan_.fabric == FabricKind::one_switch) {
      switches_ = {add(VertexKind::fabric, -1)};
      return;
    }
    const int spine = add(VertexKind::spine, -1);
    for (int rail = 0; rail < plan_.nics_per_node; ++rail) {
      switches_.push_back(add(VertexKind::leaf, -1));
      join_network(switches_.back(), spine, plan_.leaf_rate);
    }
  }

  void add_nics(int node) {
    std::vector<int> nics;
    for (int i = 0; i < plan_.nics_per_node; ++i) {
      nics.push_back(add(VertexKind::nic, node));
      join_network(nics.back(), switches_[static_cast<std::size_t>(i) % switches_.size()], plan_.nic_rate);
    }
    for (int i = 0; i < plan_.gpus_per_node; ++i) {
      join_network(gpu(node, i), nics[static_cast<std::size_t>(nic_of(i))], plan_.nic_rate);
    }
  }

  /// Returns the NIC of GPU i: the one that the file of wires names, or else i x nics / GPUs, rounded down. Then each
  /// GPU has its own NIC if there are as many NICs as GPUs; otherwise neighbours share one.
  [[nodiscard]] int nic_of(int i) const {
    const bool is_given = plan_.wires && !plan_.wires->nic_of_gpu.empty();
    return is_given ? plan_.wires->nic_of_gpu[static_cast<std::size_t>(i)]
                    : i * plan_.nics_per_node / plan_.gpus_per_node;
  }

  const TopologyPlan& plan_;
  Topology topology_;
  std::vector<int> switches_;  // switches to which NICs are joined, by rail
};

constexpr std::array node_kinds{NodeKind::nvswitch, NodeKind::full_mesh, NodeKind::pcie_tree, NodeKind::ring};
constexpr std::array fabric_kinds{FabricKind::one_switch, FabricKind::rails};

/// Returns nullopt for a name that none of the kinds has.
template <class Kinds>
auto kind_named(const Kinds& kinds, std::string_view name) {
  const auto* const entry = std::find_if(kinds.begin(), kinds.end(), [&](auto kind) { return name_of(kind) == name; });
  return entry == kinds.end() ? std::nullopt : std::optional(*entry);
}

}  // namespace

std::string_view name_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::nvswitch: return "nvswitch";
    case NodeKind::full_mesh: return "full_mesh";
    case NodeKind::pcie_tree: return "pcie_tree";
    case NodeKind::ring: return "ring";
  }
  return "";
}

std::string_view name_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::one_switch: return "one_switch";
    case FabricKind::rails: return "rails";
  }
  return "";
}

std::optional<NodeKind> node_kind_named(std::string_view name) { return kind_named(node_kinds, name); }

std::optional<FabricKind> fabric_kind_named(std::string_view name) { return kind_named(fabric_kinds, name); }

Topology build_topology(const TopologyPlan& plan) {
  check(plan.nodes >= 1 && plan.gpus_per_node >= 1 && plan.gpus_per_bridge >= 1 && plan.bridges_per_root >= 1,
        "a topology has at least one of everything");
  return Builder(plan).build();
}

}  // namespace commfuse
