// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/link_rates.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "model/check.h"

namespace commfuse {

namespace {

void scale(Parameter<BytesPerSecond>& rate, double factor) {
  rate.value.value *= factor;
  rate.provenance = Provenance::prior;
  rate.source.clear();
}

void scale(PeerParameters& peer, double factor) {
  scale(peer.rate, factor);
  scale(peer.aggregate_rate, factor);
  if (peer.small) {
    scale(peer.small->rate, factor);
  }
}

void scale(CollectiveParameters& collective, double factor) {
  if (factor != 1.0) {
    collective = with_rates(collective, factor, RateChange::supposed_wires);
  }
}

void scale_exchanges(Link& link, double factor) {
  if (factor != 1.0) {
    scale(link.nominal_rate, factor);
    link.capacity.value *= factor;
    scale(link.peer, factor);
  }
}

/// Returns the speed-up of collectives with this many GPUs per node. The links inside the nodes may limit it: they
/// carry the same data, at no less than the rate of a group inside a node.
double speedup_across(const Machine& machine, LinkRates rates, int gpus) {
  if (gpus == 1) {
    return rates.network;
  }
  const double inside = collective_over(machine, 0, gpus).rate.value.value;
  const double across = collective_across(machine, gpus).rate.value.value;
  return std::min(rates.network, rates.node * std::max(1.0, inside / across));
}

void scale_network(Machine& machine, const Machine& given, LinkRates rates) {
  scale_exchanges(*machine.network, rates.network);
  scale(machine.network->collective, speedup_across(given, rates, given.gpus_per_node));
  if (given.network_groups != nullptr) {
    auto groups = std::make_shared<std::vector<CollectiveParameters>>(*given.network_groups);
    for (std::size_t i = 0; i < groups->size(); ++i) {
      scale((*groups)[i], speedup_across(given, rates, static_cast<int>(i) + 1));
    }
    machine.network_groups = std::move(groups);
  }
}

/// Scales the groups, so that their ratio to the link stays the same.
void scale(std::shared_ptr<const std::vector<CollectiveParameters>>& shared, double factor) {
  if (shared != nullptr) {
    auto groups = std::make_shared<std::vector<CollectiveParameters>>(*shared);
    for (CollectiveParameters& group : *groups) {
      scale(group, factor);
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

/// Scales the rate of every wire, including wires from a node's file.
void scale(std::shared_ptr<const TopologyPlan>& shared, LinkRates rates) {
  if (shared != nullptr) {
    auto plan = std::make_shared<TopologyPlan>(*shared);
    plan->gpu_rate.value *= rates.node;
    scale(plan->bridge_rate, rates.node);
    if (plan->root_rate) {
      scale(*plan->root_rate, rates.node);
    }
    if (plan->wires) {
      for (Edge& edge : plan->wires->edges) {
        edge.rate.value *= rates.node;
      }
    }
    plan->nic_rate.value *= rates.network;
    plan->leaf_rate.value *= rates.network;
    shared = std::move(plan);
  }
}

void scale(std::shared_ptr<const Topology>& shared, LinkRates rates) {
  if (shared != nullptr) {
    auto topology = std::make_shared<Topology>(*shared);
    for (Edge& edge : topology->edges) {
      const double factor = is_inside_a_node(*topology, edge) ? rates.node : rates.network;
      edge.rate.value *= factor;
      edge.capacity.value *= factor;
    }
    shared = std::move(topology);
  }
}

}  // namespace

Machine with_link_rates(const Machine& given, LinkRates rates) {
  check(rates.node > 0.0 && rates.network > 0.0, "rates stay above 0");
  Machine machine = given;
  if (rates.node != 1.0) {
    scale_exchanges(machine.link, rates.node);
    scale(machine.link.collective, rates.node);
    scale(machine.group_collectives, rates.node);
    if (machine.pair_peers != nullptr) {
      auto pairs = std::make_shared<PairPeers>(*machine.pair_peers);
      for (PeerParameters& kind : pairs->kinds) {
        scale(kind, rates.node);
      }
      machine.pair_peers = std::move(pairs);
    }
  }
  if (given.network && (rates.node != 1.0 || rates.network != 1.0)) {
    scale_network(machine, given, rates);
  }
  if (rates.node != 1.0 || rates.network != 1.0) {
    scale(machine.topology, rates);
    scale(machine.plan, rates);
  }
  return machine;
}

std::optional<Machine> with_all_reduce_kernel(Machine machine, AllReduceKernel kernel) {
  const auto choose = [&](CollectiveParameters& collective) {
    collective.all_reduce_kernel = kernel;
    if (collective.custom_all_reduce == nullptr || kernel == AllReduceKernel::nccl) {
      collective.custom_all_reduce = nullptr;
      return;
    }
    auto kept = std::make_shared<CustomAllReduces>(*collective.custom_all_reduce);
    for (const AllReduceKernel other : all_all_reduce_kernels) {
      if (std::optional<CustomAllReduce>* unused = of_framework(*kept, other); unused != nullptr && other != kernel) {
        unused->reset();
      }
    }
    collective.custom_all_reduce = std::move(kept);
  };
  if (machine.group_collectives != nullptr) {
    auto groups = std::make_shared<std::vector<CollectiveParameters>>(*machine.group_collectives);
    for (CollectiveParameters& group : *groups) {
      choose(group);
    }
    machine.group_collectives = std::move(groups);
  }
  choose(machine.link.collective);
  const CollectiveParameters& chosen = machine.link.collective;
  const bool is_known = kernel == AllReduceKernel::nccl || (chosen.custom_all_reduce != nullptr &&
                                                            kernels_of(*chosen.custom_all_reduce, kernel) != nullptr);
  return is_known ? std::optional(std::move(machine)) : std::nullopt;
}

}  // namespace commfuse
