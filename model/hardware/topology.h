// SPDX-License-Identifier: Apache-2.0
// Wires between GPUs as a graph, and the route between two GPUs.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/host_link.h"
#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// crossbar: an NVSwitch, or another device that joins all GPUs of a node. bridge: a PCIe switch. root: a PCIe root
/// complex, one per socket. fabric: the network between nodes, modelled as one switch that never blocks. leaf: the
/// first switch of a rail. spine: all switches between leaves, modelled as one.
enum class VertexKind : std::uint8_t { gpu, crossbar, bridge, root, nic, fabric, leaf, spine };

struct Vertex {
  VertexKind kind = VertexKind::gpu;
  int node = 0;  ///< -1 if it belongs to no node.
};

/// Edge whose two directions carry `rate` each at the same time.
struct Edge {
  int a = 0;
  int b = 0;
  BytesPerSecond rate;
  Duration latency{};
  /// Physical rate of the wire, one direction; `rate` may be its measured rate.
  BytesPerSecond capacity{std::numeric_limits<double>::infinity()};
};

/// Graph in which vertex i is GPU i for the first `gpus` vertices, node by node.
struct Topology {
  int gpus = 0;
  std::vector<Vertex> vertices;
  std::vector<Edge> edges;
};

enum class NodeKind : std::uint8_t {
  nvswitch,   ///< Every GPU on one crossbar: a single peer gets the whole rate.
  full_mesh,  ///< A wire from every GPU to every other GPU: a single peer gets one wire.
  pcie_tree,  ///< GPUs under bridges, bridges under roots, roots joined to each other.
  ring,       ///< A wire from every GPU to the next, and from the last to the first: GPUs in between forward data.
};

enum class FabricKind : std::uint8_t {
  one_switch,  ///< Every NIC on one switch that never blocks.
  rails,       ///< NIC i of every node on leaf i, leaves on spines: rail-optimized.
};

std::string_view name_of(NodeKind kind);
std::optional<NodeKind> node_kind_named(std::string_view name);
std::string_view name_of(FabricKind kind);
std::optional<FabricKind> fabric_kind_named(std::string_view name);

/// Wires of one node, as a file describes them.
struct NodeWires {
  std::string file;  ///< Name that the user gave.
  int gpus = 0;
  std::vector<VertexKind> others;  ///< Vertices with the numbers `gpus`, `gpus` + 1 and so on.
  std::vector<Edge> edges;         ///< Without latencies.
  std::vector<int> nic_of_gpu;     ///< NIC of the node that each GPU uses; empty if the file names none.
};

/// Equal nodes on one fabric. Rates are above 0 and counts at least 1 unless stated otherwise.
struct TopologyPlan {
  NodeKind kind = NodeKind::nvswitch;
  HostLink host_link;              ///< One for each GPU.
  std::optional<NodeWires> wires;  ///< If present, they describe the node, whatever its kind.
  int gpus_per_node = 1;
  BytesPerSecond gpu_rate;  ///< Rate in one direction: to the crossbar, to a peer of a mesh or ring, or to a bridge.
  Duration hop_latency{};   ///< Latency of every wire inside a node.
  // For a PCIe tree:
  int gpus_per_bridge = 1;
  int bridges_per_root = 1;
  Parameter<BytesPerSecond> bridge_rate;  ///< Rate from a bridge to its root.
  /// Rate between two roots; without it, they are not joined.
  std::optional<Parameter<BytesPerSecond>> root_rate;
  // For several nodes:
  int nodes = 1;
  /// The GPUs share the NICs evenly unless `wires` states otherwise. 0: the nodes are not joined.
  int nics_per_node = 0;
  BytesPerSecond nic_rate;
  /// Latency from a GPU to its NIC, and again from the NIC to the fabric.
  Duration nic_latency{};
  FabricKind fabric = FabricKind::one_switch;
  /// For rails: rate from a leaf to all spines together; the leaf's NICs reach full rate only if this is at least
  /// the sum of their rates.
  BytesPerSecond leaf_rate;
};

Topology build_topology(const TopologyPlan& plan);

struct Route {
  std::vector<int> vertices;  ///< Vertices from GPU to GPU, both ends included.
  std::vector<int> links;     ///< For each hop, 2 x edge if it crosses the edge from a to b, 2 x edge + 1 from b to a.
  Duration latency{};         ///< Sum over the hops.
  BytesPerSecond rate;        ///< Rate of the slowest hop, one direction.
  bool crosses_nodes = false;
  [[nodiscard]] int hops() const { return static_cast<int>(vertices.size()) - 1; }
};

/// Returns the shortest route by latency, then by hops, then by the lowest vertices; nullopt if there is none. GPUs on
/// the route forward data only from one GPU to another: data for another node leave through the sender's NIC and arrive
/// through the receiver's NIC. Requires two different GPUs.
std::optional<Route> route_between(const Topology& topology, int gpu_a, int gpu_b);

/// Returns the routes from one GPU to every GPU, by GPU; nullopt for itself and for unreachable GPUs.
std::vector<std::optional<Route>> routes_from(const Topology& topology, int gpu);

/// Returns the highest rate among all pairs of the first node; 0 for a node of one GPU.
BytesPerSecond fastest_pair(const Topology& topology, int gpus_per_node);

/// Cache of the links of routes: the links from a GPU to all others are computed when any of them is first requested.
class KnownRoutes {
 public:
  explicit KnownRoutes(std::shared_ptr<const Topology> topology);

  /// Returns the links of route_between for GPUs that reach each other. Valid until the next call.
  [[nodiscard]] std::span<const int> links(int from, int to);
  [[nodiscard]] const Topology& topology() const { return *topology_; }

 private:
  struct Row {
    std::vector<std::uint32_t> first;  // by GPU: start of its links; last, the end of all
    std::vector<int> links;
  };
  std::shared_ptr<const Topology> topology_;
  std::vector<Row> rows_;  // by GPU; a row without entries is not yet known
};

/// Returns the lowest GPU that GPU 0 cannot reach; nullopt if there is none.
std::optional<int> unreachable_gpu(const Topology& topology);

}  // namespace commfuse
