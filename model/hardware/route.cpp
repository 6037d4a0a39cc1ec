// SPDX-License-Identifier: Apache-2.0
// Routes between GPUs.
#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>

#include "model/check.h"
#include "model/hardware/topology.h"

namespace commfuse {

namespace {

// A distance is one integer: latency in the upper bits, hops in the lower 12. Sums are correct, because no route has
// 2^12 hops.
using Distance = std::int64_t;
constexpr Distance latency_scale = Distance{1} << 12;
constexpr Distance unreached = std::numeric_limits<Distance>::max();

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                    boost::property<boost::edge_weight_t, Distance>>;

/// A link into a stop.
struct Arrival {
  int from = 0;
  int link = 0;
};

/// Shortest paths from one GPU. A stop is a vertex, or a GPU reached over its NIC; the latter ends a route and has a
/// number above those of the vertices.
class ShortestPaths {
 public:
  ShortestPaths(const Topology& topology, int start)
      : topology_(topology),
        start_(start),
        arrivals_(topology.vertices.size() + static_cast<std::size_t>(topology.gpus)),
        distances_(arrivals_.size()) {
    Graph graph(arrivals_.size());
    for (std::size_t i = 0; i < topology.edges.size(); ++i) {
      const Edge& edge = topology.edges[i];
      add(edge.a, edge.b, 2 * static_cast<int>(i), graph);
      add(edge.b, edge.a, 2 * static_cast<int>(i) + 1, graph);
    }
    boost::dijkstra_shortest_paths(graph, static_cast<std::size_t>(start),
                                   boost::distance_map(distances_.data()).distance_inf(unreached));
  }

  [[nodiscard]] bool reaches(int gpu) const { return distance(stop_of(gpu)) != unreached; }

  /// Walks back from `gpu` to the start, always to the lowest vertex on a shortest path, because Boost's own
  /// predecessors would depend on the order of its heap.
  [[nodiscard]] Route to(int gpu) const {
    Route route;
    route.vertices = {gpu};
    route.rate = {std::numeric_limits<double>::infinity()};
    for (int stop = stop_of(gpu); stop != start_;) {
      const Arrival back = shortest_arrival(stop);
      const Edge& edge = edge_of(back.link);
      route.latency += edge.latency;
      route.rate.value = std::min(route.rate.value, edge.rate.value);
      route.links.push_back(back.link);
      stop = back.from;
      route.vertices.push_back(stop);
    }
    std::reverse(route.vertices.begin(), route.vertices.end());
    std::reverse(route.links.begin(), route.links.end());
    route.crosses_nodes = vertex(start_).node != vertex(gpu).node;
    return route;
  }

 private:
  [[nodiscard]] const Vertex& vertex(int i) const { return topology_.vertices[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Edge& edge_of(int link) const { return topology_.edges[static_cast<std::size_t>(link / 2)]; }
  [[nodiscard]] Distance length_of(int link) const { return edge_of(link).latency.count() * latency_scale + 1; }
  [[nodiscard]] Distance distance(int stop) const { return distances_[static_cast<std::size_t>(stop)]; }
  [[nodiscard]] bool is_gpu(int i) const { return i < topology_.gpus; }

  void add(int from, int to, int link, Graph& graph) {
    if (is_gpu(from) && from != start_ && !is_gpu(to)) {
      return;
    }
    const bool over_nic = is_gpu(to) && vertex(from).kind == VertexKind::nic;
    const int stop = over_nic ? static_cast<int>(topology_.vertices.size()) + to : to;
    boost::add_edge(static_cast<std::size_t>(from), static_cast<std::size_t>(stop), length_of(link), graph);
    arrivals_[static_cast<std::size_t>(stop)].push_back({from, link});
  }

  /// Returns the stop at which the shortest path to a GPU arrives. Inside a node it avoids the NIC if another path
  /// exists.
  [[nodiscard]] int stop_of(int gpu) const {
    if (vertex(gpu).node == vertex(start_).node && distance(gpu) != unreached) {
      return gpu;
    }
    const int over_nic = static_cast<int>(topology_.vertices.size()) + gpu;
    return distance(over_nic) < distance(gpu) ? over_nic : gpu;
  }

  [[nodiscard]] Arrival shortest_arrival(int stop) const {
    Arrival lowest{std::numeric_limits<int>::max(), -1};
    for (const Arrival& arrival : arrivals_[static_cast<std::size_t>(stop)]) {
      const Distance before = distance(arrival.from);
      if (arrival.from < lowest.from && before != unreached && before + length_of(arrival.link) == distance(stop)) {
        lowest = arrival;
      }
    }
    return lowest;
  }

  const Topology& topology_;
  int start_;
  std::vector<std::vector<Arrival>> arrivals_;  // by stop
  std::vector<Distance> distances_;             // by stop
};

}  // namespace

std::vector<std::optional<Route>> routes_from(const Topology& topology, int gpu) {
  check(gpu >= 0 && gpu < topology.gpus, "a route starts at a GPU");
  const ShortestPaths paths(topology, gpu);
  std::vector<std::optional<Route>> routes(static_cast<std::size_t>(topology.gpus));
  for (int other = 0; other < topology.gpus; ++other) {
    if (other != gpu && paths.reaches(other)) {
      routes[static_cast<std::size_t>(other)] = paths.to(other);
    }
  }
  return routes;
}

std::optional<Route> route_between(const Topology& topology, int gpu_a, int gpu_b) {
  check(gpu_a >= 0 && gpu_a < topology.gpus && gpu_b >= 0 && gpu_b < topology.gpus && gpu_a != gpu_b,
        "a route joins two different GPUs");
  const ShortestPaths paths(topology, gpu_a);
  return paths.reaches(gpu_b) ? std::optional(paths.to(gpu_b)) : std::nullopt;
}

BytesPerSecond fastest_pair(const Topology& topology, int gpus_per_node) {
  BytesPerSecond fastest;
  for (int gpu = 0; gpu < gpus_per_node; ++gpu) {
    const std::vector<std::optional<Route>> routes = routes_from(topology, gpu);
    for (int other = 0; other < gpus_per_node; ++other) {
      if (const std::optional<Route>& route = routes[static_cast<std::size_t>(other)]) {
        fastest.value = std::max(fastest.value, route->rate.value);
      }
    }
  }
  return fastest;
}

KnownRoutes::KnownRoutes(std::shared_ptr<const Topology> topology)
    : topology_(std::move(topology)), rows_(static_cast<std::size_t>(topology_->gpus)) {}

std::span<const int> KnownRoutes::links(int from, int to) {
  Row& row = rows_[static_cast<std::size_t>(from)];
  if (row.first.empty()) {
    for (const std::optional<Route>& route : routes_from(*topology_, from)) {
      row.first.push_back(static_cast<std::uint32_t>(row.links.size()));
      if (route) {
        row.links.insert(row.links.end(), route->links.begin(), route->links.end());
      }
    }
    row.first.push_back(static_cast<std::uint32_t>(row.links.size()));
  }
  const auto target = static_cast<std::size_t>(to);
  const std::span<const int> links =
      std::span(row.links).subspan(row.first[target], row.first[target + 1] - row.first[target]);
  check(!links.empty(), "the GPUs of a machine reach each other");
  return links;
}

std::optional<int> unreachable_gpu(const Topology& topology) {
  const ShortestPaths paths(topology, 0);
  for (int gpu = 1; gpu < topology.gpus; ++gpu) {
    if (!paths.reaches(gpu)) {
      return gpu;
    }
  }
  return std::nullopt;
}

}  // namespace commfuse
