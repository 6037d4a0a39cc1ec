// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/topology.h"

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>

#include "model/check.h"

namespace commfuse {

namespace {

// A distance is latency first and hops second, in one number that adds up as a whole: no route has 2^12 hops.
using Distance = std::int64_t;
constexpr Distance latency_scale = Distance{1} << 12;
constexpr Distance unreached = std::numeric_limits<Distance>::max();

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                                    boost::property<boost::edge_weight_t, Distance>>;

/// A wire as seen from one of its ends.
struct Wire {
  int other = 0;
  int edge = 0;
};

Distance length_of(const Edge& edge) { return edge.latency.count() * latency_scale + 1; }

std::vector<Distance> distances_from(const Topology& topology, int start) {
  Graph graph(topology.vertices.size());
  for (const Edge& edge : topology.edges) {
    boost::add_edge(static_cast<std::size_t>(edge.a), static_cast<std::size_t>(edge.b), length_of(edge), graph);
  }
  std::vector<Distance> distances(topology.vertices.size());
  boost::dijkstra_shortest_paths(graph, static_cast<std::size_t>(start),
                                 boost::distance_map(distances.data()).distance_inf(unreached));
  return distances;
}

std::vector<std::vector<Wire>> wires_of(const Topology& topology) {
  std::vector<std::vector<Wire>> wires(topology.vertices.size());
  for (std::size_t i = 0; i < topology.edges.size(); ++i) {
    const Edge& edge = topology.edges[i];
    wires[static_cast<std::size_t>(edge.a)].push_back({edge.b, static_cast<int>(i)});
    wires[static_cast<std::size_t>(edge.b)].push_back({edge.a, static_cast<int>(i)});
  }
  return wires;
}

/// Walks back from `target` to where the distance is 0, always to the lowest vertex on a shortest way: Boost's own
/// predecessors would depend on the order of its heap.
Route walk_back(const Topology& topology, const std::vector<std::vector<Wire>>& wires,
                const std::vector<Distance>& distances, int target) {
  Route route;
  route.vertices = {target};
  route.rate = {std::numeric_limits<double>::infinity()};
  for (int here = target; distances[static_cast<std::size_t>(here)] > 0;) {
    Wire back{std::numeric_limits<int>::max(), -1};
    for (const Wire& wire : wires[static_cast<std::size_t>(here)]) {
      const Distance before = distances[static_cast<std::size_t>(wire.other)];
      const Distance length = length_of(topology.edges[static_cast<std::size_t>(wire.edge)]);
      if (wire.other < back.other && before != unreached &&
          before + length == distances[static_cast<std::size_t>(here)]) {
        back = wire;
      }
    }
    const Edge& edge = topology.edges[static_cast<std::size_t>(back.edge)];
    route.latency += edge.latency;
    route.rate.value = std::min(route.rate.value, edge.rate.value);
    here = back.other;
    route.vertices.push_back(here);
  }
  std::reverse(route.vertices.begin(), route.vertices.end());
  const auto node = [&](int vertex) { return topology.vertices[static_cast<std::size_t>(vertex)].node; };
  route.crosses_nodes = node(route.vertices.front()) != node(route.vertices.back());
  return route;
}

/// Adds the parts of one node after another; GPUs are there from the start.
class Builder {
 public:
  explicit Builder(const TopologyPlan& plan) : plan_(plan) {
    topology_.gpus = plan.nodes * plan.gpus_per_node;
    for (int gpu = 0; gpu < topology_.gpus; ++gpu) {
      add(VertexKind::gpu, gpu / plan.gpus_per_node);
    }
  }

  Topology build() {
    const int fabric = plan_.nodes > 1 && plan_.nics_per_node > 0 ? add(VertexKind::fabric, -1) : -1;
    for (int node = 0; node < plan_.nodes; ++node) {
      switch (plan_.kind) {
        case NodeKind::nvswitch: add_crossbar(node); break;
        case NodeKind::full_mesh: add_mesh(node); break;
        case NodeKind::pcie_tree: add_tree(node); break;
      }
      if (fabric >= 0) {
        add_nics(node, fabric);
      }
    }
    return std::move(topology_);
  }

 private:
  int add(VertexKind kind, int node) {
    topology_.vertices.push_back({kind, node});
    return static_cast<int>(topology_.vertices.size()) - 1;
  }
  void join(int a, int b, BytesPerSecond rate) { topology_.edges.push_back({a, b, rate, plan_.hop_latency}); }
  [[nodiscard]] int gpu(int node, int index) const { return node * plan_.gpus_per_node + index; }

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
        join(bridge, roots.back(), plan_.bridge_rate);
      }
      join(gpu(node, i), bridge, plan_.gpu_rate);
    }
  }

  void add_root(int node, std::vector<int>& roots) {
    const int root = add(VertexKind::root, node);
    if (plan_.root_rate) {
      for (const int other : roots) {
        join(other, root, *plan_.root_rate);
      }
    }
    roots.push_back(root);
  }

  /// GPU i uses NIC i x nics / GPUs: its own where there are as many, else one shared with its neighbours.
  void add_nics(int node, int fabric) {
    std::vector<int> nics;
    for (int i = 0; i < plan_.nics_per_node; ++i) {
      nics.push_back(add(VertexKind::nic, node));
      topology_.edges.push_back({nics.back(), fabric, plan_.nic_rate, plan_.nic_latency});
    }
    for (int i = 0; i < plan_.gpus_per_node; ++i) {
      const int nic = nics[static_cast<std::size_t>(i * plan_.nics_per_node / plan_.gpus_per_node)];
      topology_.edges.push_back({gpu(node, i), nic, plan_.nic_rate, plan_.nic_latency});
    }
  }

  const TopologyPlan& plan_;
  Topology topology_;
};

constexpr std::array node_kinds{NodeKind::nvswitch, NodeKind::full_mesh, NodeKind::pcie_tree};

}  // namespace

std::string_view name_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::nvswitch: return "nvswitch";
    case NodeKind::full_mesh: return "full_mesh";
    case NodeKind::pcie_tree: return "pcie_tree";
  }
  return "";
}

std::optional<NodeKind> node_kind_named(std::string_view name) {
  const auto* const found =
      std::find_if(node_kinds.begin(), node_kinds.end(), [&](NodeKind kind) { return name_of(kind) == name; });
  return found == node_kinds.end() ? std::nullopt : std::optional(*found);
}

Topology build_topology(const TopologyPlan& plan) {
  check(plan.nodes >= 1 && plan.gpus_per_node >= 1 && plan.gpus_per_bridge >= 1 && plan.bridges_per_root >= 1,
        "a topology has at least one of everything");
  return Builder(plan).build();
}

std::vector<std::optional<Route>> routes_from(const Topology& topology, int gpu) {
  check(gpu >= 0 && gpu < topology.gpus, "a route starts at a GPU");
  const std::vector<Distance> distances = distances_from(topology, gpu);
  const std::vector<std::vector<Wire>> wires = wires_of(topology);
  std::vector<std::optional<Route>> routes(static_cast<std::size_t>(topology.gpus));
  for (int other = 0; other < topology.gpus; ++other) {
    if (other != gpu && distances[static_cast<std::size_t>(other)] != unreached) {
      routes[static_cast<std::size_t>(other)] = walk_back(topology, wires, distances, other);
    }
  }
  return routes;
}

std::optional<Route> route_between(const Topology& topology, int gpu_a, int gpu_b) {
  check(gpu_a >= 0 && gpu_a < topology.gpus && gpu_b >= 0 && gpu_b < topology.gpus && gpu_a != gpu_b,
        "a route joins two different GPUs");
  const std::vector<Distance> distances = distances_from(topology, gpu_a);
  if (distances[static_cast<std::size_t>(gpu_b)] == unreached) {
    return std::nullopt;
  }
  return walk_back(topology, wires_of(topology), distances, gpu_b);
}

std::optional<int> unreachable_gpu(const Topology& topology) {
  const std::vector<Distance> distances = distances_from(topology, 0);
  for (int gpu = 0; gpu < topology.gpus; ++gpu) {
    if (distances[static_cast<std::size_t>(gpu)] == unreached) {
      return gpu;
    }
  }
  return std::nullopt;
}

}  // namespace commfuse
