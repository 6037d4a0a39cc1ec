// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/link_rates.h"

#include <memory>
#include <vector>

#include "model/check.h"

namespace commfuse {

namespace {

void raise(Parameter<BytesPerSecond>& rate, double times) {
  rate.value.value *= times;
  rate.provenance = Provenance::prior;
  rate.source.clear();
}

void raise(PeerParameters& peer, double times) {
  raise(peer.rate, times);
  raise(peer.aggregate_rate, times);
  if (peer.small) {
    raise(peer.small->rate, times);
  }
}

void raise(Link& link, double times) {
  raise(link.nominal_rate, times);
  raise(link.peer, times);
  link.collective = with_rates(link.collective, times, RateChange::supposed_wires);
}

/// What groups see differs from the link by as much as before.
void raise(std::shared_ptr<const std::vector<CollectiveParameters>>& shared, double times) {
  if (shared != nullptr) {
    auto groups = std::make_shared<std::vector<CollectiveParameters>>(*shared);
    for (CollectiveParameters& group : *groups) {
      group = with_rates(group, times, RateChange::supposed_wires);
    }
    shared = std::move(groups);
  }
}

bool is_inside_a_node(const Topology& topology, const Edge& edge) {
  const auto inside = [&](int vertex) {
    const VertexKind kind = topology.vertices[static_cast<std::size_t>(vertex)].kind;
    return kind == VertexKind::gpu || kind == VertexKind::crossbar || kind == VertexKind::bridge ||
           kind == VertexKind::root;
  };
  return inside(edge.a) && inside(edge.b);
}

void raise(std::shared_ptr<const Topology>& shared, LinkRates rates) {
  if (shared != nullptr) {
    auto topology = std::make_shared<Topology>(*shared);
    for (Edge& edge : topology->edges) {
      edge.rate.value *= is_inside_a_node(*topology, edge) ? rates.node : rates.network;
    }
    shared = std::move(topology);
  }
}

}  // namespace

Machine with_link_rates(Machine machine, LinkRates rates) {
  check(rates.node > 0.0 && rates.network > 0.0, "rates stay above 0");
  if (rates.node != 1.0) {
    raise(machine.link, rates.node);
    raise(machine.group_collectives, rates.node);
    if (machine.pair_peers != nullptr) {
      auto pairs = std::make_shared<PairPeers>(*machine.pair_peers);
      for (PeerParameters& kind : pairs->kinds) {
        raise(kind, rates.node);
      }
      machine.pair_peers = std::move(pairs);
    }
  }
  if (rates.network != 1.0 && machine.network) {
    raise(*machine.network, rates.network);
    raise(machine.network_groups, rates.network);
  }
  if (rates.node != 1.0 || rates.network != 1.0) {
    raise(machine.topology, rates);
  }
  return machine;
}

}  // namespace commfuse
