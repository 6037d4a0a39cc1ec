// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/segments.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "model/check.h"
#include "model/hardware/machine.h"

namespace commfuse {

namespace {

constexpr std::int32_t ports_of_a_gpu = 4;

/// Numbers the links of a topology as Segments does.
class LinkPlaces {
 public:
  explicit LinkPlaces(const Topology& topology) : topology_(topology) {
    std::vector<std::int32_t> next(1, 0);  // next number in the fabric, then in each node
    for (const Edge& edge : topology.edges) {
      const auto owner = static_cast<std::size_t>(node_of(edge) + 1);
      next.resize(std::max(next.size(), owner + 1), 0);
      places_.push_back(next[owner]);
      next[owner] += 2;
    }
    of_fabric = next[0];
    of_a_node = next.size() > 1 ? next[1] : 0;
  }

  /// Returns the node of an edge; -1 for the fabric.
  [[nodiscard]] int node_of(const Edge& edge) const {
    return std::max(topology_.vertices[static_cast<std::size_t>(edge.a)].node,
                    topology_.vertices[static_cast<std::size_t>(edge.b)].node);
  }
  [[nodiscard]] std::int32_t place_of(std::size_t edge) const { return places_[edge]; }

  std::int32_t of_fabric = 0;
  std::int32_t of_a_node = 0;

 private:
  const Topology& topology_;
  std::vector<std::int32_t> places_;  // place of the direction a to b; b to a follows it
};

class SegmentsMaker {
 public:
  SegmentsMaker(const Topology& topology, int gpus_per_node) : topology_(topology), places_(topology) {
    segments_.gpus_per_node = gpus_per_node;
    segments_.of_fabric = places_.of_fabric;
    segments_.links_of_a_node = places_.of_a_node;
    segments_.of_a_node = places_.of_a_node + ports_of_a_gpu * gpus_per_node;
    segments_.edges.assign(static_cast<std::size_t>(places_.of_fabric + places_.of_a_node), -1);
    for (std::size_t edge = 0; edge < topology.edges.size(); ++edge) {
      note_edge(edge);
    }
  }

  Segments make() {
    const int gpus = segments_.gpus_per_node;
    std::vector<std::vector<std::optional<Route>>> routes;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      routes.push_back(routes_from(topology_, gpu));
    }
    for (const int across : {0, 1}) {
      for (int a = 0; a < gpus; ++a) {
        for (int b = 0; b < gpus; ++b) {
          segments_.ways.push_back(static_cast<std::uint32_t>(segments_.crossings.size()));
          const int to = across * gpus + b;
          if (to != a && to < topology_.gpus) {
            add_way(a, b, across == 1, routes[static_cast<std::size_t>(a)][static_cast<std::size_t>(to)]);
          }
        }
      }
    }
    segments_.ways.push_back(static_cast<std::uint32_t>(segments_.crossings.size()));
    return std::move(segments_);
  }

 private:
  void note_edge(std::size_t edge) {
    const int node = places_.node_of(topology_.edges[edge]);
    if (node <= 0) {
      const std::int32_t first = places_.place_of(edge) + (node < 0 ? 0 : segments_.of_fabric);
      segments_.edges[static_cast<std::size_t>(first)] = static_cast<std::int32_t>(edge);
      segments_.edges[static_cast<std::size_t>(first) + 1] = static_cast<std::int32_t>(edge);
    }
  }

  void add_port(int gpu, bool across, bool inwards) {
    const std::int32_t place = segments_.links_of_a_node + ports_of_a_gpu * gpu + (across ? 2 : 0) + (inwards ? 1 : 0);
    segments_.crossings.push_back({place, inwards ? Segments::Side::receiver : Segments::Side::sender});
  }

  void add_way(int a, int b, bool across, const std::optional<Route>& route) {
    check(route.has_value() || topology_.edges.empty(), "the GPUs of a machine reach each other");
    add_port(a, across, false);
    for (const int link : route ? route->links : std::vector<int>{}) {
      const auto edge = static_cast<std::size_t>(link / 2);
      const int node = places_.node_of(topology_.edges[edge]);
      segments_.crossings.push_back({places_.place_of(edge) + link % 2, node < 0    ? Segments::Side::fabric
                                                                        : node == 0 ? Segments::Side::sender
                                                                                    : Segments::Side::receiver});
    }
    add_port(b, across, true);
  }

  const Topology& topology_;
  LinkPlaces places_;
  Segments segments_;
};

/// Rates of segments, derived from the ways between pairs that cross them.
class RatesMaker {
 public:
  RatesMaker(const Segments& segments, const Machine& machine)
      : segments_(segments),
        machine_(machine),
        rates_(static_cast<std::size_t>(segments.of_fabric + segments.of_a_node), 0.0) {}

  void add_way(int from, int to) {
    const PeerParameters& peer = peer_between(machine_, from, to);
    const double rate = peer.rate.value.value;
    double slowest = std::numeric_limits<double>::infinity();
    for (const Segments::Crossing& crossing : segments_.way(from, to)) {
      slowest = is_link(crossing) ? std::min(slowest, link_rate(crossing)) : slowest;
    }
    for (const Segments::Crossing& crossing : segments_.way(from, to)) {
      const double carried =
          is_link(crossing) ? rate * (link_rate(crossing) / slowest) : peer.aggregate_rate.value.value;
      double& segment_rate = rates_[segments_.kind(crossing)];
      segment_rate = std::max({segment_rate, rate, carried});
    }
  }

  [[nodiscard]] std::vector<double> rates() && { return std::move(rates_); }

 private:
  [[nodiscard]] bool is_link(const Segments::Crossing& crossing) const {
    return crossing.side == Segments::Side::fabric || crossing.place < segments_.links_of_a_node;
  }
  [[nodiscard]] double link_rate(const Segments::Crossing& crossing) const {
    const std::int32_t edge = segments_.edges[segments_.kind(crossing)];
    return machine_.topology->edges[static_cast<std::size_t>(edge)].rate.value;
  }

  const Segments& segments_;
  const Machine& machine_;
  std::vector<double> rates_;
};

}  // namespace

Segments segments_of(const Topology& topology, int gpus_per_node) {
  check(gpus_per_node >= 1 && topology.gpus >= gpus_per_node, "a topology has a whole node");
  return SegmentsMaker(topology, gpus_per_node).make();
}

std::shared_ptr<const Segments> segments_of(const Machine& machine) {
  if (machine.segments != nullptr) {
    return machine.segments;
  }
  Topology ports{.gpus = total_gpus(machine), .vertices = {}, .edges = {}};
  ports.vertices.resize(static_cast<std::size_t>(ports.gpus));
  return std::make_shared<const Segments>(
      segments_of(machine.topology != nullptr ? *machine.topology : ports, machine.gpus_per_node));
}

std::vector<double> segment_rates(const Segments& segments, const Machine& machine) {
  RatesMaker maker(segments, machine);
  const int gpus = segments.gpus_per_node;
  for (int a = 0; a < gpus; ++a) {
    for (int to = 0; to < (machine.nodes > 1 ? 2 : 1) * gpus; ++to) {
      if (to != a) {
        maker.add_way(a, to);
      }
    }
  }
  return std::move(maker).rates();
}

}  // namespace commfuse
