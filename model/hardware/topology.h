// SPDX-License-Identifier: Apache-2.0
// The wires between GPUs as a graph, and the route between two of them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// crossbar: an NVSwitch, or what else joins all GPUs of a node. bridge: a PCIe switch. root: a PCIe root complex, one
/// a socket. fabric: the network between nodes, taken as one switch that never blocks. leaf: the first switch of a
/// rail. spine: all switches between leaves, taken as one.
enum class VertexKind : std::uint8_t { gpu, crossbar, bridge, root, nic, fabric, leaf, spine };

struct Vertex {
  VertexKind kind = VertexKind::gpu;
  int node = 0;  ///< -1: in none.
};

/// Both directions carry `rate` at once.
struct Edge {
  int a = 0;
  int b = 0;
  BytesPerSecond rate;
  Duration latency{};
  /// What the wire is built for, one direction; `rate` may be what was measured of it.
  BytesPerSecond capacity{std::numeric_limits<double>::infinity()};
};

/// Vertex i is GPU i for the first `gpus` of them, node by node.
struct Topology {
  int gpus = 0;
  std::vector<Vertex> vertices;
  std::vector<Edge> edges;
};

enum class NodeKind : std::uint8_t {
  nvswitch,   ///< Every GPU on one crossbar: a single peer gets the whole rate.
  full_mesh,  ///< A wire from every GPU to every other: a single peer gets one of them.
  pcie_tree,  ///< GPUs under bridges, bridges under roots, roots joined to each other.
  ring,       ///< A wire from every GPU to the next and from the last to the first: others pass on.
};

enum class FabricKind : std::uint8_t {
  one_switch,  ///< Every NIC on one switch that never blocks.
  rails,       ///< NIC i of every node on leaf i, leaves on spines: rail-optimised.
};

std::string_view name_of(NodeKind kind);
std::optional<NodeKind> node_kind_named(std::string_view name);
std::string_view name_of(FabricKind kind);
std::optional<FabricKind> fabric_kind_named(std::string_view name);

/// The wires of one node, as a file tells them.
struct NodeWires {
  std::string file;  ///< As the user names it.
  int gpus = 0;
  std::vector<VertexKind> others;  ///< Vertices gpus, gpus + 1 and so on.
  std::vector<Edge> edges;         ///< Without latencies.
  std::vector<int> nic_of_gpu;     ///< Which NIC of the node a GPU uses; empty where the file tells of none.
};

/// Equal nodes on one fabric. Rates are above 0 and counts at least 1 where not said otherwise.
struct TopologyPlan {
  NodeKind kind = NodeKind::nvswitch;
  std::optional<NodeWires> wires;  ///< Then they are the node, whatever its kind.
  int gpus_per_node = 1;
  BytesPerSecond gpu_rate;  ///< One direction: to the crossbar, to one peer of the mesh or ring, or to the bridge.
  Duration hop_latency{};   ///< Of every wire inside a node.
  // Of a PCIe tree.
  int gpus_per_bridge = 1;
  int bridges_per_root = 1;
  Parameter<BytesPerSecond> bridge_rate;               ///< From a bridge to its root.
  std::optional<Parameter<BytesPerSecond>> root_rate;  ///< Between two roots; without it they are not joined.
  // Of several nodes.
  int nodes = 1;
  int nics_per_node = 0;  ///< Shared evenly by the GPUs where `wires` says nothing else. 0: the nodes are not joined.
  BytesPerSecond nic_rate;
  Duration nic_latency{};  ///< From a GPU to its NIC, and from there to the fabric: twice on the way out.
  FabricKind fabric = FabricKind::one_switch;
  BytesPerSecond
      leaf_rate;  ///< Of rails: from a leaf to all spines together; a leaf's NICs at full rate need their sum.
};

Topology build_topology(const TopologyPlan& plan);

struct Route {
  std::vector<int> vertices;  ///< From GPU to GPU, both ends included.
  std::vector<int> links;     ///< Of each hop: 2 x edge from its a to its b, 2 x edge + 1 from b to a.
  Duration latency{};         ///< Summed over the hops.
  BytesPerSecond rate;        ///< Of the slowest hop, one direction.
  bool crosses_nodes = false;
  [[nodiscard]] int hops() const { return static_cast<int>(vertices.size()) - 1; }
};

/// The shortest by latency, then by hops, then the one through the lowest vertices; nothing when there is none. GPUs on
/// the way only pass on from one wire between GPUs to another: what goes to another node leaves by the sender's own NIC
/// and arrives by the receiver's. Requires two different GPUs.
std::optional<Route> route_between(const Topology& topology, int gpu_a, int gpu_b);

/// From one GPU to each, by GPU; nothing for itself and for those that cannot be reached.
std::vector<std::optional<Route>> routes_from(const Topology& topology, int gpu);

/// The links of routes, kept: those of a GPU to all others are worked out when one of them is first asked for.
class KnownRoutes {
 public:
  explicit KnownRoutes(std::shared_ptr<const Topology> topology);

  /// Links as route_between has them, of GPUs that reach each other. Valid until the next call.
  [[nodiscard]] std::span<const int> links(int from, int to);
  [[nodiscard]] const Topology& topology() const { return *topology_; }

 private:
  struct Row {
    std::vector<std::uint32_t> first;  // by GPU, and the end
    std::vector<int> links;
  };
  std::shared_ptr<const Topology> topology_;
  std::vector<Row> rows_;  // by GPU; without entries: not known
};

/// The lowest GPU that GPU 0 cannot reach.
std::optional<int> unreachable_gpu(const Topology& topology);

}  // namespace commfuse
