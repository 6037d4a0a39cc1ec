// SPDX-License-Identifier: Apache-2.0
#include "tests/laws/wire_bound.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "model/cost/shape_sizes.h"
#include "model/program/matching.h"

namespace commfuse::laws {

namespace {

/// Bytes that kernels themselves move over one link.
struct KernelLoad {
  double bytes = 0.0;
  std::set<Rank> senders;
  std::set<Rank> receivers;
  std::set<std::pair<Rank, Rank>> pairs;

  /// Returns the fewest bytes that must cross the link: a block that many ranks receive, or that many add to, needs to
  /// cross only once.
  [[nodiscard]] double least_bytes() const {
    const std::size_t blocks = std::min(senders.size(), receivers.size());
    return pairs.empty() ? 0.0 : bytes * static_cast<double>(blocks) / static_cast<double>(pairs.size());
  }
};

/// Bytes by directed link (Route::links), and bytes of collectives that leave and enter each GPU.
struct Loads {
  std::vector<double> links;
  std::vector<KernelLoad> kernels;  // by link
  std::vector<double> out;
  std::vector<double> in;
};

class LoadsOfRun {
 public:
  LoadsOfRun(const Program& program, const Sizes& sizes, const Machine& machine)
      : program_(program), sizes_(sizes), topology_(*machine.topology) {
    const auto ranks = static_cast<std::size_t>(program.mesh.ranks());
    const std::size_t links = 2 * topology_.edges.size();
    loads_ = {std::vector<double>(links), std::vector<KernelLoad>(links), std::vector<double>(ranks),
              std::vector<double>(ranks)};
  }

  Loads sum() {
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      const std::vector<std::optional<Route>> routes = routes_from(topology_, rank);
      for (const Op& op : program_.ops) {
        if (op.where.holds(program_.mesh.coordinates(rank))) {
          add(op, rank, routes);
        }
      }
    }
    return std::move(loads_);
  }

 private:
  void add(const Op& op, Rank rank, const std::vector<std::optional<Route>>& routes) {
    const Shape& shape = program_.shapes[op.shape];
    if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      add(op, *exchange, rank, routes);
    } else if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
      add(*collective, rank);
    }
  }

  /// Counts sends only: a fetch counts as a send of the rank that holds the data.
  void add(const Op& op, const ExchangeShape& exchange, Rank rank, const std::vector<std::optional<Route>>& routes) {
    const Rank target = target_of(program_, exchange, rank);
    if (!exchange.sends || target == rank) {
      return;
    }
    const auto bytes = static_cast<double>(load_of(exchange, sizes_).count);
    for (const int link_index : routes[static_cast<std::size_t>(target)]->links) {
      const auto link = static_cast<std::size_t>(link_index);
      if (program_.lanes[op.lane].kind != LaneKind::kernel) {
        loads_.links[link] += bytes;
        continue;
      }
      KernelLoad& load = loads_.kernels[link];
      load.bytes += bytes;
      load.senders.insert(rank);
      load.receivers.insert(target);
      load.pairs.emplace(rank, target);
    }
  }

  void add(const CollectiveShape& collective, Rank rank) {
    const double ranks = program_.mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
    const double wire = static_cast<double>(load_of(collective, sizes_).count) * (ranks - 1.0) / ranks;
    const auto gpu = static_cast<std::size_t>(rank);
    loads_.out[gpu] += collective.kind == CollectiveKind::all_gather ? 0.0 : wire;
    loads_.in[gpu] += collective.kind == CollectiveKind::reduce_scatter ? 0.0 : wire;
  }

  const Program& program_;
  const Sizes& sizes_;
  const Topology& topology_;
  Loads loads_;
};

/// Returns the rate into a GPU over all its edges. The rate out of it is equal, because an edge has the same rate in
/// each direction.
double port_rate(const Topology& topology, std::size_t gpu) {
  double rate = 0.0;
  for (const Edge& edge : topology.edges) {
    const bool touches = static_cast<std::size_t>(edge.a) == gpu || static_cast<std::size_t>(edge.b) == gpu;
    rate += touches ? edge.rate.value : 0.0;
  }
  return rate;
}

}  // namespace

double wire_bound(const Program& program, const Sizes& sizes, const Machine& machine) {
  const Topology& topology = *machine.topology;
  const Loads loads = LoadsOfRun(program, sizes, machine).sum();
  double seconds = 0.0;
  for (std::size_t link = 0; link < loads.links.size(); ++link) {
    const double bytes = loads.links[link] + loads.kernels[link].least_bytes();
    seconds = std::max(seconds, bytes / topology.edges[link / 2].rate.value);
  }
  for (std::size_t gpu = 0; gpu < loads.out.size(); ++gpu) {
    const double bytes = std::max(loads.out[gpu], loads.in[gpu]);
    seconds = bytes > 0.0 ? std::max(seconds, bytes / port_rate(topology, gpu)) : seconds;
  }
  return seconds * 1e12;
}

}  // namespace commfuse::laws
